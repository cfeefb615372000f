//! Provider dialects: the subset of JSON Schema that a provider accepts, and the conversion of arguments back.
//!
//! There are two families. A *light* dialect takes JSON Schema almost as it is (`light`). A *narrow* one lacks much of it, so that
//! maps, tuples, unions and optional fields are encoded in what it has (`encoder`). Both return a [`Codec`], which converts
//! arguments back to their original shape. Read in this order:
//!
//! - `light`: light dialects, and the names that providers accept;
//! - `encoder`: narrow dialects, with `object`, `leaf` (arrays, enumerations, scalars) and `union`;
//! - `resolve`: references and `allOf`;
//! - `codec`: the conversion of arguments, with `decode` for those that a model sends.
//!
//! The rules of each provider are in [`provider`](crate::provider).

mod codec;
mod decode;
mod encoder;
mod leaf;
mod light;
mod object;
mod resolve;
mod union;

use serde_json::Value;

pub use codec::Codec;
pub(crate) use encoder::encode;
pub(crate) use light::{LightRules, encode as encode_light, full_name, renamed, safe_name};

/// The parameters of a tool in a dialect.
#[derive(Debug)]
pub struct Encoded {
    /// The schema that the model is shown.
    pub schema: Value,
    /// The conversion of arguments.
    pub codec: Codec,
    /// The parts that the dialect cannot express.
    pub report: Vec<Loss>,
}

/// A part of a schema that the provider cannot enforce. Arguments are still checked against the original schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loss {
    /// The path, for example `items[].price`; empty for the arguments as a whole.
    pub path: String,
    /// The lost keyword, or a word such as `recursion`.
    pub what: String,
    /// What the model is shown instead.
    pub instead: String,
}

/// The capabilities of a narrow dialect.
#[allow(clippy::struct_excessive_bools, reason = "each is one rule of a provider, independent of the others")]
pub(crate) struct Capabilities {
    /// Parts may be defined once and referred to, also by themselves.
    pub(crate) has_references: bool,
    /// Every field must be sent, and no others; a missing field is `null` instead.
    pub(crate) requires_all: bool,
    /// `null` is a type; else `nullable` is used.
    pub(crate) has_null: bool,
    /// An `enum` is of strings that are not empty.
    pub(crate) lists_strings_only: bool,
    /// Nothing may be beside `anyOf`.
    pub(crate) isolates_unions: bool,
    /// An object below the root may have no properties.
    pub(crate) has_empty_objects: bool,
    /// The deepest nesting of objects and arrays.
    pub(crate) depth: usize,
    /// The most properties in all.
    pub(crate) properties: usize,
    /// The most values of all enumerations together.
    pub(crate) listed: usize,
    /// The total length of all names and listed values.
    pub(crate) characters: usize,
    /// The test for names of properties.
    pub(crate) is_name: fn(&str) -> bool,
    /// The test for keywords that a type may have.
    pub(crate) keeps: fn(kind: &str, keyword: &str, value: &Value) -> bool,
}

/// The number of strings in an enumeration above which their total length is limited.
pub(super) const MANY_LISTED: usize = 250;
/// The largest total length of such an enumeration, in bytes.
pub(super) const LONGEST_LISTED: usize = 15_000;

/// The size of an encoded schema, as providers count it.
#[derive(Default)]
struct Measure {
    properties: usize,
    listed: usize,
    characters: usize,
    nesting: usize,
}

/// True if an encoded schema is within the limits of a dialect.
pub(super) fn fits(schema: &Value, capabilities: &Capabilities) -> bool {
    let mut measure = Measure::default();
    measure.schema(schema, 0);
    measure.properties <= capabilities.properties
        && measure.listed <= capabilities.listed
        && measure.characters <= capabilities.characters
        && measure.nesting <= capabilities.depth
}

impl Measure {
    fn schema(&mut self, schema: &Value, depth: usize) {
        let Value::Object(map) = schema else { return };
        let is_container = map.contains_key("properties") || map.contains_key("items");
        let depth = depth + usize::from(is_container);
        self.nesting = self.nesting.max(depth);
        for (keyword, value) in map {
            match (keyword.as_str(), value) {
                ("properties", Value::Object(properties)) => {
                    self.properties += properties.len();
                    for (name, property) in properties {
                        self.characters += name.chars().count();
                        self.schema(property, depth);
                    }
                }
                ("$defs", Value::Object(definitions)) => {
                    for (name, definition) in definitions {
                        self.characters += name.chars().count();
                        self.schema(definition, 0);
                    }
                }
                ("items", schema) => self.schema(schema, depth),
                ("anyOf", Value::Array(choices)) => choices.iter().for_each(|choice| self.schema(choice, depth)),
                ("enum", Value::Array(values)) => {
                    self.listed += values.len();
                    self.characters += values.iter().filter_map(Value::as_str).map(str::len).sum::<usize>();
                }
                _ => {}
            }
        }
    }
}

/// The longest value in a sentence, in characters.
const LONGEST: usize = 300;

/// The sentence that describes a keyword.
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

/// Joins sentences to one description.
pub(crate) fn joined(sentences: impl IntoIterator<Item = String>) -> String {
    let mut description = String::new();
    for sentence in sentences {
        let sentence = sentence.trim_end();
        if !sentence.is_empty() {
            if !description.is_empty() {
                let is_sentence = description.ends_with(['.', '!', '?', ':', ';', ')']);
                description.push_str(if is_sentence { " " } else { ". " });
            }
            description.push_str(sentence);
        }
    }
    description
}

/// The beginning of a value's JSON. No more of it is written than is shown.
pub(super) fn beginning(value: &Value, most: usize) -> String {
    struct BoundedBuffer(Vec<u8>, usize);

    impl std::io::Write for BoundedBuffer {
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

    let mut buffer = BoundedBuffer(Vec::new(), most * 4);
    // The error only says that the rest does not fit.
    let _ = serde_json::to_writer(&mut buffer, value);
    short(&String::from_utf8_lossy(&buffer.0), most)
}

/// The beginning of a string.
pub(super) fn short(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
