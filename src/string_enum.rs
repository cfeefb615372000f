//! Enums whose values have a word each, in files, in Python and in messages.

/// Declares an enum with `ALL`, `parse` and `as_str`; further words after `|` are accepted by `parse` only.
macro_rules! string_enum {
    (
        $(#[$attribute:meta])*
        $visibility:vis enum $name:ident {
            $($(#[$about:meta])* $variant:ident = $word:literal $(| $alias:literal)*),+ $(,)?
        }
    ) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        $visibility enum $name {
            $($(#[$about])* $variant),+
        }

        impl $name {
            /// All values, in the order of their declaration.
            $visibility const ALL: [Self; [$($word),+].len()] = [$(Self::$variant),+];

            /// Parses a word, to the letter; `None` if it is unknown.
            #[must_use]
            $visibility fn parse(word: &str) -> Option<Self> {
                match word {
                    $($word $(| $alias)* => Some(Self::$variant),)+
                    _ => None,
                }
            }

            /// The word for the value.
            #[must_use]
            $visibility const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word),+
                }
            }
        }
    };
}
