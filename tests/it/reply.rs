//! The texts that models and developers read, to the letter, and the words that users write.

use toolcrib::Error;
use toolcrib::call::{ArgumentMode, Code, ErrorMode, Reply, RunIn};
use toolcrib::registry::NameConflict;

#[test]
fn an_answer_has_a_code_and_a_fixed_text() {
    let name = || "look".to_owned();
    let table = [
        (
            Reply::BadCall { reason: "it has no `name`".to_owned() },
            "bad_call",
            "Error: Invalid tool call: it has no `name`",
        ),
        (
            Reply::UnknownTool { name: name(), similar: None },
            "unknown_tool",
            "FunctionNotFoundError: Cannot find the function named look",
        ),
        (
            Reply::InactiveGroup { tool: name(), group: "web".to_owned() },
            "inactive_group",
            "FunctionInactiveError: The function 'look' is in the inactive group 'web'. \
             Activate the tool group by calling 'reset_equipped_tools' first to use this tool.",
        ),
        (
            Reply::Quarantined { tool: name(), reason: "it has changed".to_owned() },
            "denied",
            "Error: The tool 'look' is quarantined and did not run: it has changed",
        ),
        (
            Reply::Quarantined { tool: name(), reason: String::new() },
            "denied",
            "Error: The tool 'look' is quarantined and did not run",
        ),
        (
            Reply::NotAvailable { tool: name(), similar: None },
            "tool_not_available",
            "Error: The tool 'look' is not available.",
        ),
        (
            Reply::UnknownTool { name: name(), similar: None }.suggesting(Some("look_up")),
            "unknown_tool",
            "FunctionNotFoundError: Cannot find the function named look. Did you mean 'look_up'?",
        ),
        (
            Reply::NotAvailable { tool: name(), similar: None }.suggesting(Some("look_up")),
            "tool_not_available",
            "Error: The tool 'look' is not available. Did you mean 'look_up'?",
        ),
        (Reply::raised("KeyError", "'k'"), "failed", "KeyError: 'k'"),
        (Reply::raised("ValueError", ""), "failed", "ValueError"),
        (Reply::undescribed("look"), "failed", "Error: The tool 'look' failed."),
        (Reply::InvalidArguments { text: "the whole text".to_owned() }, "invalid_arguments", "the whole text"),
        (Reply::Failed { message: "'k'".to_owned() }, "failed", "Error: 'k'"),
        (Reply::Failed { message: String::new() }, "failed", "Error: "),
        (Reply::FailedInBackground { message: "no".to_owned() }, "failed", "Error during async execution: no"),
        (
            Reply::Interrupted,
            "interrupted",
            "<system-info>The tool call has been interrupted by the user.</system-info>",
        ),
        (
            Reply::InterruptedInBackground,
            "interrupted",
            "<system-info>The tool call has been cancelled by the user.</system-info>",
        ),
        (
            Reply::Timeout { tool: name(), seconds: 1.5 },
            "timeout",
            "Error: The tool 'look' did not finish within 1.5 seconds.",
        ),
    ];

    for (answer, code, text) in table {
        assert_eq!((answer.code().as_str(), answer.text().as_str()), (code, text));
    }
}

#[test]
fn whole_seconds_are_told_without_a_fraction() {
    let answer = Reply::Timeout { tool: "look".to_owned(), seconds: 2.0 };

    assert_eq!(answer.text(), "Error: The tool 'look' did not finish within 2 seconds.");
}

#[test]
fn no_two_codes_share_a_word() {
    let codes = [
        Code::BadCall,
        Code::UnknownTool,
        Code::InactiveGroup,
        Code::InvalidArguments,
        Code::Failed,
        Code::Interrupted,
        Code::Timeout,
        Code::UnknownTask,
        Code::TaskRunning,
        Code::TaskFinished,
        Code::ToolNotAvailable,
    ];

    let mut words: Vec<&str> = codes.iter().map(|code| code.as_str()).collect();
    words.sort_unstable();
    words.dedup();

    assert_eq!(words.len(), codes.len());
}

#[test]
fn an_error_says_what_agentscopes_users_compare() {
    let name = || "look".to_owned();
    let table = [
        (Error::DuplicateTool { name: name() }, "A function with name 'look' is already registered in the toolkit."),
        (Error::UnknownTool { name: name() }, "Tool function 'look' does not exist in the toolkit."),
        (Error::DuplicateGroup { name: name() }, "Tool group 'look' is already registered in the toolkit."),
        (Error::UnknownGroup { name: name() }, "Tool group 'look' not found."),
        (Error::BasicGroup, "Cannot remove the default 'basic' tool group."),
        (Error::InvalidSchema { reason: String::new() }, "Invalid JSON schema for the tool function."),
        (Error::InvalidSchema { reason: "no".to_owned() }, "Invalid JSON schema for the tool function. no"),
        (
            Error::IncompleteSchema { tool: name(), key: "parameters".to_owned() },
            "invalid JSON schema of tool `look`: missing `parameters`",
        ),
        (Error::NoFreeName { name: name(), tries: 100 }, "no free name for tool `look` after 100 tries"),
    ];

    for (error, text) in table {
        assert_eq!(error.to_string(), text);
    }
}

#[test]
fn every_word_is_read_and_no_other() {
    let words = ["", "Raise", "raise ", "none", "true"];

    assert_eq!(
        ["raise", "skip", "override", "rename"].map(NameConflict::parse),
        [NameConflict::Raise, NameConflict::Skip, NameConflict::Override, NameConflict::Rename].map(Some)
    );
    assert_eq!(
        ["coerce", "check", "pass"].map(ArgumentMode::parse),
        [ArgumentMode::Coerce, ArgumentMode::Check, ArgumentMode::Pass].map(Some)
    );
    assert_eq!(
        ["respond", "raise", "compat"].map(ErrorMode::parse),
        [ErrorMode::Respond, ErrorMode::Raise, ErrorMode::Compat].map(Some)
    );
    assert_eq!(
        ["thread", "inline", "process"].map(RunIn::parse),
        [RunIn::Thread, RunIn::Inline, RunIn::Process].map(Some)
    );
    assert_eq!(words.map(NameConflict::parse), [None; 5]);
    assert_eq!(words.map(ArgumentMode::parse), [None; 5]);
    assert_eq!(words.map(ErrorMode::parse), [None; 5]);
    assert_eq!(words.map(RunIn::parse), [None; 5]);
}

#[test]
fn the_defaults_are_toolcribs_own() {
    assert_eq!(NameConflict::default(), NameConflict::Raise);
    assert_eq!(ArgumentMode::default(), ArgumentMode::Coerce);
    assert_eq!(ErrorMode::default(), ErrorMode::Respond);
    assert_eq!(RunIn::default(), RunIn::Thread);
}
