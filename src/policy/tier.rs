//! Whose rules go before whose.

use std::fmt;

/// Who wrote a rule; the rules of a later tier go before all rules of an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Tier {
    /// The program itself.
    #[default]
    Default,
    /// The project that is worked on.
    Project,
    /// The person who uses the program.
    User,
    /// Whoever runs the machine.
    Admin,
}

impl Tier {
    /// Every tier, from the weakest to the strongest.
    pub const ALL: [Self; 4] = [Self::Default, Self::Project, Self::User, Self::Admin];

    /// Reads the word for it.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tier| tier.as_str() == word)
    }

    /// The word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Project => "project",
            Self::User => "user",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}
