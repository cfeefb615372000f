//! What single keywords of a schema say.

use super::{
    kinds::Kinds,
    quick::{Quick, Scalar, Size},
    subject::{Integer, float_of, integer_of, is_integer_text},
};
use crate::schema::{Entries, Node};

/// Keywords of any draft that assert something and that are not compiled here. A schema with one of them is left to the judge.
const UNCOMPILED: [&str; 30] = [
    "$anchor",
    "$dynamicAnchor",
    "$dynamicRef",
    "$id",
    "$recursiveAnchor",
    "$recursiveRef",
    "$schema",
    "$vocabulary",
    "additionalItems",
    "allOf",
    "contains",
    "contentEncoding",
    "contentMediaType",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "else",
    "id",
    "if",
    "maxContains",
    "minContains",
    "multipleOf",
    "not",
    "oneOf",
    "pattern",
    "patternProperties",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// What one look at the keywords tells.
pub(super) struct Facts {
    pub(super) kinds: Option<Kinds>,
    /// Nothing but a type asserts anything.
    pub(super) plain: bool,
    /// An `enum` or a `const` lists what is allowed.
    pub(super) listed: bool,
    /// Something is asked of the inside or of the size.
    pub(super) structured: bool,
}

impl Facts {
    /// `None` if the judge has to be asked.
    pub(super) fn read(schema: &Entries, is_root: bool) -> Option<Facts> {
        let mut facts = Facts { kinds: None, plain: true, listed: false, structured: false };
        for (keyword, value) in schema.iter() {
            match keyword {
                "type" => facts.kinds = Some(kinds(value)?),
                "description" | "title" | "default" | "examples" | "format" | "$defs" | "definitions" => {}
                "$ref" | "anyOf" => facts.plain = false,
                "enum" | "const" => (facts.plain, facts.listed) = (false, true),
                "properties"
                | "required"
                | "additionalProperties"
                | "minProperties"
                | "maxProperties"
                | "items"
                | "prefixItems"
                | "minItems"
                | "maxItems"
                | "uniqueItems"
                | "minLength"
                | "maxLength"
                | "minimum"
                | "maximum"
                | "exclusiveMinimum"
                | "exclusiveMaximum" => (facts.plain, facts.structured) = (false, true),
                // An identity changes what references mean, except where it is that of the whole document.
                "$schema" | "$id" if is_root => {}
                other if UNCOMPILED.binary_search(&other).is_ok() => return None,
                _ => {}
            }
        }
        Some(facts)
    }
}

/// The kinds of a `type`. A float such as `1.0` is an integer to JSON Schema, but not here: declined, never wrong.
fn kinds(value: &Node) -> Option<Kinds> {
    match value {
        Node::String(name) => Kinds::named(name),
        Node::Array(names) => {
            names.iter().try_fold(Kinds::NONE, |kinds, name| Some(kinds.or(Kinds::named(name.as_str()?)?)))
        }
        _ => None,
    }
}

/// The test for what an `enum` or a `const` lists, as far as a `type` beside it allows.
pub(super) fn listed(schema: &Entries, kinds: Option<Kinds>) -> Option<Quick> {
    let members = match (schema.get("enum"), schema.get("const")) {
        (Some(Node::Array(members)), None) => members.as_slice(),
        (None, Some(member)) => std::slice::from_ref(member),
        _ => return None,
    };
    let mut scalars = members.iter().map(scalar).collect::<Option<Vec<Scalar>>>()?;
    scalars.retain(|scalar| kinds.is_none_or(|kinds| kinds.has(scalar.kind())));
    if !scalars.iter().all(|scalar| matches!(scalar, Scalar::Text(_))) {
        return Some(Quick::Scalars(scalars.into()));
    }
    let words =
        scalars.into_iter().filter_map(|scalar| if let Scalar::Text(word) = scalar { Some(word) } else { None });
    Some(Quick::Words(words.collect()))
}

#[allow(clippy::cast_possible_truncation)]
fn scalar(value: &Node) -> Option<Scalar> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    Some(match value {
        Node::Null => Scalar::Null,
        Node::Bool(value) => Scalar::Bool(*value),
        Node::Number(number) if is_integer_text(number.as_str()) => match integer_of(number) {
            Integer::Small(small) => Scalar::Int(small),
            Integer::Above | Integer::Below => return None,
        },
        Node::Number(number) => match float_of(number)? {
            float if float.fract() == 0.0 && float.abs() < EXACT => Scalar::Int(float as i64),
            float => Scalar::Float(float),
        },
        Node::String(text) => Scalar::Text(text.as_ref().into()),
        Node::Array(_) | Node::Object(_) => return None,
    })
}

/// A pair of sizes; `None` if one is no size.
pub(super) fn size(schema: &Entries, least: &str, most: &str) -> Option<Size> {
    let read = |keyword: &str, default: usize| match schema.get(keyword) {
        None => Some(default),
        Some(value) => usize::try_from(value.as_u64()?).ok(),
    };
    Some(Size { least: read(least, 0)?, most: read(most, usize::MAX)? })
}
