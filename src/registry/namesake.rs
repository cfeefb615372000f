//! What to do when a new tool has the name of an old one.

/// How many new names are tried before giving up.
pub(super) const TRIES: usize = 100;

/// What to do with a tool whose name is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Namesake {
    /// Refuse it.
    #[default]
    Raise,
    /// Keep the old one.
    Skip,
    /// Put the new one in the place of the old one.
    Override,
    /// Keep both, the new one under a new name.
    Rename,
}

impl Namesake {
    /// Reads the word that users write.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "raise" => Self::Raise,
            "skip" => Self::Skip,
            "override" => Self::Override,
            "rename" => Self::Rename,
            _ => return None,
        })
    }
}
