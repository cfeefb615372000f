//! Changes as text, for the exception and the report.

use std::fmt;

use serde_json::Value;

use super::{Change, ChangeClass, Difference};
use crate::json::invisible::{spelled, visible};

/// The most differences of a tool that are listed.
const MOST_LISTED: usize = 20;
/// The longest value that is shown whole, in characters.
const LONGEST: usize = 120;
/// The characters of a long text that are shown before its first difference.
const CONTEXT: usize = 20;

/// Describes changes, one tool after the other.
#[must_use]
pub fn render(changes: &[Change]) -> String {
    changes.iter().map(Change::to_string).collect::<Vec<_>>().join("\n")
}

impl Change {
    /// The reason for a quarantine. It has no text of the tool's source, because a model may read it.
    #[must_use]
    pub fn reason(&self) -> String {
        if self.is(ChangeClass::Added) {
            return "its definition has not been reviewed".to_owned();
        }
        format!("its definition has changed since it was reviewed ({})", self.words())
    }

    fn words(&self) -> String {
        self.classes.iter().map(|class| class.as_str()).collect::<Vec<_>>().join(", ")
    }
}

impl fmt::Display for Change {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tool = if self.is(ChangeClass::LookAlike) { spelled(&self.tool) } else { visible(&self.tool) };
        write!(formatter, "`{tool}` ({}): {}", visible(&self.source.to_string()), self.words())?;
        for difference in self.differences.iter().take(MOST_LISTED) {
            write!(formatter, "\n    {difference}")?;
        }
        match self.differences.len().saturating_sub(MOST_LISTED) {
            0 => Ok(()),
            more => write!(formatter, "\n    and {more} more"),
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, class) = (visible(&self.path), self.class);
        match (&self.before, &self.after) {
            (Some(Value::String(before)), Some(Value::String(after))) if class == ChangeClass::LookAlike => {
                write!(formatter, "{path}: `{}` looks like `{}`", spelled(after), spelled(before))
            }
            (Some(before), Some(after)) => {
                let (before, after) = apart(&before.to_string(), &after.to_string());
                write!(formatter, "{path}: {before} -> {after} ({class})")
            }
            (Some(before), None) => write!(formatter, "{path}: removed {} ({class})", cut(&before.to_string())),
            (None, Some(after)) => write!(formatter, "{path}: added {} ({class})", cut(&after.to_string())),
            (None, None) => write!(formatter, "{path} ({class})"),
        }
    }
}

/// Two texts, each from shortly before their first difference.
fn apart(before: &str, after: &str) -> (String, String) {
    let common = before.chars().zip(after.chars()).take_while(|(before, after)| before == after).count();
    let is_long = |text: &str| text.chars().nth(LONGEST).is_some();
    let skipped = if is_long(before) || is_long(after) { common.saturating_sub(CONTEXT) } else { 0 };
    let from = |text: &str| {
        let rest: String = text.chars().skip(skipped).collect();
        if skipped > 0 { format!("…{}", cut(&rest)) } else { cut(&rest) }
    };
    (from(before), from(after))
}

/// The beginning of a text, with invisible characters escaped.
fn cut(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", visible(&text[..end])),
        None => visible(text),
    }
}
