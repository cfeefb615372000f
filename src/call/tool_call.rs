//! The request of a model to call a tool, in any format.

use std::borrow::Cow;
use std::fmt;

use serde_json::{Map, Value};

use super::repair::ParsedArguments;
use crate::policy::Redaction;
use crate::schema::check::ValuePath;

/// One call that a model asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// The id that the model or its provider gave the call; the result carries it back.
    pub id: Option<String>,
    /// The tool's name, byte for byte as it was written.
    pub name: String,
    /// The arguments: always an object.
    pub arguments: Value,
    /// The arguments, or the whole call, as the model wrote them, where they came as text.
    pub raw: Option<String>,
    /// Why this call cannot be run; if it is there, the call never runs.
    pub error: Option<CallError>,
    /// The repairs that were needed to read it.
    pub repairs: Vec<Repair>,
    /// True if the end is missing, so that the arguments may be only a part of what was meant.
    pub is_truncated: bool,
    /// True if an object had a key twice, so that it cannot be known which value was meant.
    pub has_duplicate_keys: bool,
    /// The name of the format that it was written in.
    pub format: Cow<'static, str>,
}

impl ToolCall {
    /// A call that was read without any trouble.
    #[must_use]
    pub fn new(name: impl Into<String>, arguments: Map<String, Value>) -> Self {
        Self {
            id: None,
            name: name.into(),
            arguments: Value::Object(arguments),
            raw: None,
            error: None,
            repairs: Vec::new(),
            is_truncated: false,
            has_duplicate_keys: false,
            format: Cow::Borrowed("bare"),
        }
    }

    /// A call whose arguments were read from text, or could not be.
    #[must_use]
    pub fn with_arguments(name: impl Into<String>, read: Result<ParsedArguments, CallError>) -> Self {
        match read {
            Ok(ParsedArguments { arguments, repairs, is_truncated, has_duplicate_keys }) => {
                Self { repairs, is_truncated, has_duplicate_keys, ..Self::new(name, arguments) }
            }
            Err(error) => Self::unreadable(name, error),
        }
    }

    /// The same with a key that came twice listed among the repairs.
    #[must_use]
    pub fn with_duplicates_listed(mut self) -> Self {
        if self.has_duplicate_keys && !self.repairs.iter().any(|repair| repair.what == RepairKind::Duplicate) {
            self.repairs.push(Repair::of_duplicates());
        }
        self
    }

    /// A call that cannot be read, and therefore never runs.
    #[must_use]
    pub fn unreadable(name: impl Into<String>, error: CallError) -> Self {
        Self { error: Some(error), ..Self::new(name, Map::new()) }
    }
}

/// One repair of a call. Two are equal if they are reported in the same way: one that was read back has only its report.
#[derive(Debug, Clone)]
pub struct Repair {
    /// The kind of repair.
    pub what: RepairKind,
    /// The place: a path into the arguments such as `filter.tags[0]`, or the root for the text as a whole.
    pub at: ValuePath,
    /// The change.
    pub change: Change,
    /// The number of times that the same was repaired.
    pub times: usize,
}

impl PartialEq for Repair {
    fn eq(&self, other: &Self) -> bool {
        self.what == other.what && self.at.to_string() == other.at.to_string() && self.text() == other.text()
    }
}

impl Eq for Repair {}

/// The change that a repair made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A sentence of toolcrib's own that shows no value.
    Said(Cow<'static, str>),
    /// Something in the request was read as something else; both are shown.
    ReadAs {
        /// The value in the request.
        before: String,
        /// The value that it was read as.
        after: String,
    },
    /// A sentence that came with a call from elsewhere, which may show a value.
    Reported(String),
    /// A change of which nothing may be shown.
    Hidden,
}

impl fmt::Display for Change {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Said(text) => formatter.write_str(text),
            Self::ReadAs { before, after } => write!(formatter, "{before} was read as {after}"),
            Self::Reported(text) => formatter.write_str(text),
            Self::Hidden => formatter.write_str("it was read as a value of another kind"),
        }
    }
}

impl Repair {
    /// A repair of the text as a whole, in a sentence that shows no value.
    #[must_use]
    pub fn new(what: RepairKind, text: impl Into<Cow<'static, str>>) -> Self {
        Self::of(what, Change::Said(text.into()))
    }

    /// A repair of the text as a whole.
    #[must_use]
    pub fn of(what: RepairKind, change: Change) -> Self {
        Self { what, at: ValuePath::default(), change, times: 1 }
    }

    /// The repair of a key that came twice.
    #[must_use]
    pub fn of_duplicates() -> Self {
        Self::new(RepairKind::Duplicate, "a key comes twice in an object; the last of its values counts")
    }

    /// The same at a place.
    #[must_use]
    pub fn at(mut self, at: impl Into<ValuePath>) -> Self {
        self.at = at.into();
        self
    }

    /// The change as text.
    #[must_use]
    pub fn text(&self) -> String {
        match self.times {
            0 | 1 => self.change.to_string(),
            times => format!("{} ({times} times)", self.change),
        }
    }

    /// The same without a value that is not public.
    #[must_use]
    pub fn redacted(mut self, redaction: &Redaction<'_>) -> Self {
        let shows_value = matches!(self.change, Change::ReadAs { .. } | Change::Reported(_));
        if shows_value && !redaction.is_public(&self.at) {
            self.change = Change::Hidden;
        }
        self
    }
}

/// The kinds of repairs, as words that programs compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RepairKind {
    /// A code fence around the arguments was taken away.
    Fence,
    /// Prose before or after the arguments was taken away.
    Prose,
    /// A comma was taken away or put in.
    Comma,
    /// A colon was put in.
    Colon,
    /// Quotes were put in, or exchanged for those of JSON.
    Quotes,
    /// `True`, `False`, `None` and their like were written in JSON's way.
    Literal,
    /// `NaN` or an infinity, which JSON does not have, became `null`.
    NotANumber,
    /// A number was written in JSON's way.
    Number,
    /// A comment was taken away.
    Comment,
    /// A line break or another control character in a string was escaped.
    Newline,
    /// A backslash that begins no escape was escaped.
    Escape,
    /// JSON text in a string was read as what it says.
    Encoding,
    /// A bracket or a quote that was missing at the end was put there: the text is truncated.
    Closed,
    /// A bracket that closes nothing was taken away.
    Bracket,
    /// Of two values under the same key the last counts.
    Duplicate,
    /// Some other mistake in the JSON text.
    Syntax,
    /// A name was written in the way that the tool's parameters are.
    Name,
    /// A registered other name of a parameter was replaced.
    Alias,
    /// A value was converted to the declared type.
    Coerced,
    /// A tag was put in, or read as what it was meant for.
    Tag,
    /// A bare `&` or `<` was taken for the letter that it is.
    Markup,
}

impl RepairKind {
    /// All of them.
    pub const ALL: [Self; 21] = [
        Self::Fence,
        Self::Prose,
        Self::Comma,
        Self::Colon,
        Self::Quotes,
        Self::Literal,
        Self::NotANumber,
        Self::Number,
        Self::Comment,
        Self::Newline,
        Self::Escape,
        Self::Encoding,
        Self::Closed,
        Self::Bracket,
        Self::Duplicate,
        Self::Syntax,
        Self::Name,
        Self::Alias,
        Self::Coerced,
        Self::Tag,
        Self::Markup,
    ];

    /// Reads the word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }

    /// The word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fence => "fence",
            Self::Prose => "prose",
            Self::Comma => "comma",
            Self::Colon => "colon",
            Self::Quotes => "quotes",
            Self::Literal => "literal",
            Self::NotANumber => "not_a_number",
            Self::Number => "number",
            Self::Comment => "comment",
            Self::Newline => "newline",
            Self::Escape => "escape",
            Self::Encoding => "encoding",
            Self::Closed => "closed",
            Self::Bracket => "bracket",
            Self::Duplicate => "duplicate",
            Self::Syntax => "syntax",
            Self::Name => "name",
            Self::Alias => "alias",
            Self::Coerced => "coerced",
            Self::Tag => "tag",
            Self::Markup => "markup",
        }
    }
}

/// A position in a text, line and column counted from one, the column in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The line.
    pub line: usize,
    /// The character in the line.
    pub column: usize,
}

impl Place {
    /// The place of a byte of a text.
    #[must_use]
    pub fn of(text: &str, byte: usize) -> Self {
        let before = &text.as_bytes()[..byte.min(text.len())];
        let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
        let line = before.iter().fold(1, |line, byte| line + usize::from(*byte == b'\n'));
        // Every character has one byte that does not continue another.
        let column = before[line_start..].iter().filter(|byte| **byte & 0xC0 != 0x80).count() + 1;
        Self { line, column }
    }
}

/// The reason why a call cannot be run, as text for the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallError {
    /// The mistake.
    pub what: String,
    /// Its place, if known.
    pub at: Option<Place>,
    /// The right form; may be empty.
    pub how: String,
}

impl CallError {
    /// An error without a place.
    #[must_use]
    pub fn new(what: impl Into<String>, how: impl Into<String>) -> Self {
        Self { what: what.into(), at: None, how: how.into() }
    }

    /// The same at a place.
    #[must_use]
    pub fn at(mut self, place: Place) -> Self {
        self.at = Some(place);
        self
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.what)?;
        if let Some(Place { line, column }) = self.at {
            write!(formatter, " at line {line} column {column}")?;
        }
        if !self.how.is_empty() {
            write!(formatter, ". {}", self.how)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_counts_lines_and_characters_from_one() {
        assert_eq!(Place::of("ab", 0), Place { line: 1, column: 1 });
        assert_eq!(Place::of("ä\nüß!", "ä\nüß".len()), Place { line: 2, column: 3 });
    }

    #[test]
    fn an_error_says_what_where_and_how() {
        let error = CallError::new("the tag is not closed", "Write </tool_call>.").at(Place { line: 2, column: 3 });

        assert_eq!(error.to_string(), "the tag is not closed at line 2 column 3. Write </tool_call>.");
    }
}
