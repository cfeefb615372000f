//! What a tool does to the world, and whether it asks by itself, as its developer says.

/// What a tool does to the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Kind {
    /// It looks at something.
    Read,
    /// It changes or makes something.
    Edit,
    /// It removes something.
    Delete,
    /// It moves or renames something.
    Move,
    /// It looks for something.
    Search,
    /// It runs code or a command.
    Execute,
    /// It changes nothing but what the model thinks.
    Think,
    /// It gets something from elsewhere.
    Fetch,
    /// Nobody said.
    #[default]
    Other,
}

impl Kind {
    /// Every kind with its word.
    pub const ALL: [(Self, &str); 9] = [
        (Self::Read, "read"),
        (Self::Edit, "edit"),
        (Self::Delete, "delete"),
        (Self::Move, "move"),
        (Self::Search, "search"),
        (Self::Execute, "execute"),
        (Self::Think, "think"),
        (Self::Fetch, "fetch"),
        (Self::Other, "other"),
    ];

    /// Reads the word for it; `write` is another one for `edit`.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        if word == "write" {
            return Some(Self::Edit);
        }
        Self::ALL.iter().find(|(_, known)| *known == word).map(|(kind, _)| *kind)
    }

    /// The word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Edit => "edit",
            Self::Delete => "delete",
            Self::Move => "move",
            Self::Search => "search",
            Self::Execute => "execute",
            Self::Think => "think",
            Self::Fetch => "fetch",
            Self::Other => "other",
        }
    }

    /// Whether the world is the same afterwards.
    #[must_use]
    pub const fn is_read_only(self) -> bool {
        matches!(self, Self::Read | Self::Search | Self::Think | Self::Fetch)
    }
}

/// Whether a tool asks before it runs, if no rule says otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Permission {
    /// It runs.
    #[default]
    Auto,
    /// Somebody has to agree.
    Confirm,
}

impl Permission {
    /// Reads the word for it.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "auto" => Some(Self::Auto),
            "confirm" => Some(Self::Confirm),
            _ => None,
        }
    }

    /// The word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Confirm => "confirm",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_read_from_its_own_word() {
        for (kind, word) in Kind::ALL {
            assert_eq!((Kind::parse(word), kind.as_str()), (Some(kind), word));
        }
    }

    #[test]
    fn a_word_in_other_letters_is_no_kind() {
        assert_eq!(Kind::parse("Read"), None);
        assert_eq!(Kind::parse("write"), Some(Kind::Edit));
    }

    #[test]
    fn every_permission_is_read_from_its_own_word() {
        for permission in [Permission::Auto, Permission::Confirm] {
            assert_eq!(Permission::parse(permission.as_str()), Some(permission));
        }
        assert_eq!(Permission::parse("CONFIRM"), None);
    }
}
