//! What a dialect has no keyword for, in words.

use serde_json::Value;

/// How long a value may be in a sentence.
const LONGEST: usize = 300;

/// A keyword as a sentence.
pub(super) fn sentence(keyword: &str, value: &Value) -> String {
    let shown = value.as_str().map_or_else(|| beginning(value, LONGEST), |text| short(text, LONGEST));
    match keyword {
        "minLength" => format!("At least {shown} {}.", counted(&shown, "character", "characters")),
        "maxLength" => format!("At most {shown} {}.", counted(&shown, "character", "characters")),
        "pattern" => format!("Must match the pattern `{shown}`."),
        "format" => format!("Format: {shown}."),
        "minimum" => format!("At least {shown}."),
        "maximum" => format!("At most {shown}."),
        "exclusiveMinimum" => format!("Greater than {shown}."),
        "exclusiveMaximum" => format!("Less than {shown}."),
        "multipleOf" => format!("A multiple of {shown}."),
        "minItems" => format!("At least {shown} {}.", counted(&shown, "item", "items")),
        "maxItems" => format!("At most {shown} {}.", counted(&shown, "item", "items")),
        "uniqueItems" => "No item twice.".to_owned(),
        "minProperties" => format!("At least {shown} {}.", counted(&shown, "entry", "entries")),
        "maxProperties" => format!("At most {shown} {}.", counted(&shown, "entry", "entries")),
        "propertyNames" => format!("Every key fits the JSON Schema {shown}."),
        "contains" => format!("At least one item fits the JSON Schema {shown}."),
        "not" => format!("Must not fit the JSON Schema {shown}."),
        "enum" => format!("One of {shown}."),
        "examples" => format!("Examples: {shown}."),
        "default" => format!("Default: {}.", beginning(value, LONGEST)),
        "anyOf" => format!("Must fit one of the JSON Schemas {shown}."),
        "oneOf" => format!("Must fit exactly one of the JSON Schemas {shown}."),
        _ => format!("Must also fit `{keyword}` of JSON Schema: {shown}."),
    }
}

fn counted(count: &str, one: &'static str, several: &'static str) -> &'static str {
    if count == "1" { one } else { several }
}

/// Sentences as one description.
pub(crate) fn joined(words: impl IntoIterator<Item = String>) -> String {
    let mut description = String::new();
    for word in words {
        let word = word.trim_end();
        if !word.is_empty() {
            if !description.is_empty() {
                let is_sentence = description.ends_with(['.', '!', '?', ':', ';', ')']);
                description.push_str(if is_sentence { " " } else { ". " });
            }
            description.push_str(word);
        }
    }
    description
}

/// The beginning of a value's JSON; no more of it is written than is shown.
pub(super) fn beginning(value: &Value, most: usize) -> String {
    struct Room(Vec<u8>, usize);

    impl std::io::Write for Room {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            if self.0.len() > self.1 {
                return Err(std::io::ErrorKind::WriteZero.into());
            }
            self.0.extend_from_slice(&bytes[..bytes.len().min(self.1 * 4)]);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    let mut room = Room(Vec::new(), most * 4);
    // What does not fit is not shown.
    let _ = serde_json::to_writer(&mut room, value);
    short(&String::from_utf8_lossy(&room.0), most)
}

/// The beginning of a text.
pub(super) fn short(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
