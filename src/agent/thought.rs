//! The subject of a thought: models begin a thought with a short summary in bold.

/// A thought of a model, split at its first text in bold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thought<'a> {
    /// The text between the first pair of `**`, without blanks around it; empty if there is none.
    pub subject: &'a str,
    before: &'a str,
    after: &'a str,
}

const BOLD: &str = "**";

impl<'a> Thought<'a> {
    /// Parses a thought.
    ///
    /// ```
    /// use toolcrib::agent::Thought;
    ///
    /// let thought = Thought::parse("**Planning** I will look");
    ///
    /// assert_eq!((thought.subject, thought.description().as_str()), ("Planning", "I will look"));
    /// ```
    #[must_use]
    pub fn parse(text: &'a str) -> Self {
        let bold = text.split_once(BOLD).and_then(|(before, rest)| Some((before, rest.split_once(BOLD)?)));
        match bold {
            Some((before, (subject, after))) => Self { subject: subject.trim(), before, after },
            None => Self { subject: "", before: text, after: "" },
        }
    }

    /// The rest of the thought.
    #[must_use]
    pub fn description(&self) -> String {
        format!("{}{}", self.before, self.after).trim().to_owned()
    }
}
