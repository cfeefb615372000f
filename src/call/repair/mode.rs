//! Whether arguments are mended.

/// What is done about arguments that have to be mended before a tool can run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RepairMode {
    /// They are mended, and the response tells what was done.
    #[default]
    On,
    /// The tool does not run; the answer tells what would have to be mended.
    Explain,
    /// Nothing is mended.
    Off,
}

impl RepairMode {
    /// Reads the word that users write.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "on" => Self::On,
            "explain" => Self::Explain,
            "off" => Self::Off,
            _ => return None,
        })
    }

    /// The word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::On => "on",
            Self::Explain => "explain",
            Self::Off => "off",
        }
    }
}
