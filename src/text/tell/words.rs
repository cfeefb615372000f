//! The sentences that each form of writing a call needs.

use super::Form;

/// What is said about a form.
pub(super) struct Words {
    /// Stands before the sample of a call.
    pub(super) introduction: &'static str,
    /// What goes wrong most often, and why.
    pub(super) warning: &'static str,
    /// How objects and lists of lists are written, where that is not clear from the rest.
    pub(super) nested: Option<&'static str>,
    /// The same as rules to keep.
    pub(super) guidelines: [&'static str; 4],
}

const EXACT_NAME: &str = "Use the exact name of a tool that is listed above.";
const ALL_REQUIRED: &str = "Give every required parameter; leave out optional ones that you do not need.";
const ONE_CALL: &str = "Make one single call per turn, then stop and wait for its result.";
const STRICT_JSON: &str = "The JSON must be valid: double quotes around names and text, `\\n` for a line break in a text, \
                           no comments, no comma at the end.";

pub(super) fn words(form: Form) -> Words {
    match form {
        Form::Xml => Words {
            introduction: "You can use tools. To call one, write XML in exactly this form:",
            warning: "IMPORTANT: wrap every value in CDATA, as in <![CDATA[value]]>. Inside of it the characters <, > and & \
                      and line breaks are taken as they are; outside they break the call.",
            nested: Some("Write an object, or a list of objects or lists, as JSON inside of CDATA."),
            guidelines: [EXACT_NAME, ALL_REQUIRED, "Wrap every value in CDATA, always.", ONE_CALL],
        },
        Form::Hermes => Words {
            introduction: "You can use tools. To call one, write its name and its arguments as a JSON object between these \
                           tags:",
            warning: STRICT_JSON,
            nested: None,
            guidelines: [
                EXACT_NAME,
                ALL_REQUIRED,
                "Write one JSON object between the tags, and nothing else.",
                ONE_CALL,
            ],
        },
        Form::Function => Words {
            introduction: "You can use tools. To call one, write its name in the first tag, and its arguments as a JSON \
                           object before the second:",
            warning: STRICT_JSON,
            nested: None,
            guidelines: [
                EXACT_NAME,
                ALL_REQUIRED,
                "Write one JSON object between the tags, and nothing else.",
                ONE_CALL,
            ],
        },
        Form::Invoke => Words {
            introduction: "You can use tools. To call one, write its name and one element for each argument in exactly this \
                           form:",
            warning: "Write a text as it is, without quotes around it, and every list as JSON.",
            nested: Some("Write an object as JSON too."),
            guidelines: [EXACT_NAME, ALL_REQUIRED, "Close every element that you open.", ONE_CALL],
        },
        Form::Fenced => Words {
            introduction: "You can use tools. To call one, write its name and its arguments as a JSON object in a code fence `tool_call`:",
            warning: STRICT_JSON,
            nested: None,
            guidelines: [EXACT_NAME, ALL_REQUIRED, "Write one JSON object in the fence, and nothing else.", ONE_CALL],
        },
        Form::React => Words {
            introduction: "You can use tools. To call one, write these two lines, with its arguments as a JSON object:",
            warning: STRICT_JSON,
            nested: None,
            guidelines: [
                EXACT_NAME,
                ALL_REQUIRED,
                "Begin a line with `Action:` only to call a tool, and write nothing after the JSON object.",
                "Make one single call per turn, then stop: what follows `Observation:` comes from the tool, not from you.",
            ],
        },
    }
}
