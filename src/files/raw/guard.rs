//! The guard on raw text I/O: a variable of the environment that denies it, warns of it, or allows it.

use std::ffi::OsString;

use serde_json::Value;

use crate::call::{Code, ToolResponse};

/// The variables, of which the strictest counts.
const VARIABLES: [&str; 2] = ["AGENTSCOPE_DANGEROUS_TEXT_IO", "TOOLCRIB_DANGEROUS_TEXT_IO"];

string_enum! {
    /// The decision on raw text I/O, the strictest first.
    #[derive(PartialOrd, Ord)]
    pub enum TextIo {
        /// No file is accessed.
        Deny = "deny",
        /// Every call logs a warning.
        Warn = "warn",
        /// Calls are not logged.
        Allow = "allow",
    }
}

impl TextIo {
    /// The decision of the environment of this process.
    #[must_use]
    pub fn current() -> Self {
        Self::of(VARIABLES.into_iter().filter_map(std::env::var_os))
    }

    /// The decision of the values of variables that are set. Without any, calls are warned of. Only the words themselves are
    /// accepted; any other value denies, so that a spelling mistake or a value that was planted does not open the files of the
    /// machine.
    fn of(values: impl Iterator<Item = OsString>) -> Self {
        let parse = |value: OsString| Self::parse(value.to_str()?);
        values.map(|value| parse(value).unwrap_or(Self::Deny)).min().unwrap_or(Self::Warn)
    }
}

/// A call of a raw tool that the guard knows of.
#[derive(Debug, Clone)]
pub(super) struct GuardedCall {
    pub(super) decision: TextIo,
    pub(super) tool: &'static str,
    /// The path as the model wrote it.
    pub(super) path: String,
}

/// The text of a call that is denied.
const BLOCKED: &str = "Blocked by policy: raw OS file access is disabled. Use FileSystem service tools instead.";

impl GuardedCall {
    /// The warning for the developer, if there is one.
    pub(super) fn warning(&self) -> Option<String> {
        let Self { decision, tool, path } = self;
        let outcome = match decision {
            TextIo::Deny => "was denied",
            TextIo::Warn => "has",
            TextIo::Allow => return None,
        };
        // Quoted, so that a path cannot forge a line of the log.
        Some(format!(
            "tool `{tool}` {outcome} raw access to the path {path:?}: {} is `{}`",
            VARIABLES[1],
            decision.as_str()
        ))
    }

    /// The response to a call that is denied.
    pub(super) fn blocked(&self) -> ToolResponse {
        ToolResponse { code: Some(Code::Denied), ..self.response(BLOCKED.to_owned()) }
    }

    /// The response with the metadata of the guard.
    pub(super) fn response(&self, text: String) -> ToolResponse {
        ToolResponse { metadata: Some(self.metadata()), ..ToolResponse::of_text(text) }
    }

    fn metadata(&self) -> Value {
        let entries: [(&str, Value); 6] = [
            ("dangerous_io", true.into()),
            ("policy", self.decision.as_str().into()),
            ("tool", self.tool.into()),
            ("path", (*self.path).into()),
            ("blocked", (self.decision == TextIo::Deny).into()),
            ("reason", "bypass_filesystem".into()),
        ];
        // Collected into a map that is made in the right size.
        Value::Object(entries.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    fn decision<const N: usize>(values: [&str; N]) -> TextIo {
        TextIo::of(values.into_iter().map(OsString::from))
    }

    #[test]
    fn an_environment_without_the_variables_warns() {
        assert_eq!(decision([]), TextIo::Warn);
    }

    #[test]
    fn the_words_are_taken_to_the_letter() {
        for (value, expected) in [("deny", TextIo::Deny), ("warn", TextIo::Warn), ("allow", TextIo::Allow)] {
            assert_eq!(decision([value]), expected, "{value:?}");
        }
    }

    #[test]
    fn any_other_value_denies() {
        let values = [
            "",
            " ",
            "1",
            "0",
            "true",
            "yes",
            "no",
            "on",
            "off",
            "none",
            "allowed",
            "allow;",
            "allow,warn",
            "\"allow\"",
            "'allow'",
            "al low",
            "allow\0",
            "ａｌｌｏｗ",
            "allow=1",
            " allow",
            "allow\n",
            "Allow",
            "ALLOW",
            "WARN\t",
            "Warn",
            "DENY",
            "warning",
            "log",
            "default",
        ];

        for value in values {
            assert_eq!(decision([value]), TextIo::Deny, "{value:?}");
        }
        assert_eq!(TextIo::of([OsString::from_vec(b"allow\xff".to_vec())].into_iter()), TextIo::Deny);
    }

    #[test]
    fn the_strictest_variable_counts() {
        assert_eq!(decision(["allow", "warn"]), TextIo::Warn);
        assert_eq!(decision(["deny", "allow"]), TextIo::Deny);
        assert_eq!(decision(["allow", "other"]), TextIo::Deny);
        assert_eq!(decision(["allow", "allow"]), TextIo::Allow);
    }
}
