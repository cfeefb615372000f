//! The compiler from a JSON Schema to a [`FastCheck`].

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use super::bounds::Bounds;
use super::fast::{FastArray, FastCheck, FastField, FastLimits, FastObject, KindSet, Scalar, SizeRange};
use super::format::{FormatRules, TextFormat};
use super::value::{Integer, float_of, integer_of};
use crate::json::number::is_integer_text;
use crate::json::{Entries, Node};

/// The depth of schemas that are compiled; deeper ones are left to the validator.
const DEPTH: usize = 64;

/// Compiles schemas of one document and owns the definitions they share.
#[derive(Debug)]
pub(super) struct Compiler<'s> {
    root: &'s Node,
    /// The definitions by the text of the reference.
    shared: HashMap<&'s str, CompiledDefinition>,
    /// True if `items` does not apply to the items of `prefixItems`, as in the draft of 2020.
    modern: bool,
    formats: FormatRules,
    depth: usize,
}

/// A definition, while it is compiled and after.
#[derive(Debug)]
enum CompiledDefinition {
    Open(Weak<FastCheck>),
    Done(Arc<FastCheck>),
}

impl<'s> Compiler<'s> {
    pub(super) fn new(root: &'s Node, formats: FormatRules) -> Self {
        let dialect = root.get("$schema").and_then(Node::as_str);
        let modern = dialect.is_none_or(|dialect| dialect.contains("2020-12"));
        Compiler { root, shared: HashMap::new(), modern, formats, depth: 0 }
    }

    /// The definitions that compiled schemas refer to. They must be kept together with the [`FastCheck`].
    pub(super) fn into_shared(self) -> Vec<Arc<FastCheck>> {
        let shared = self.shared.into_values();
        shared
            .filter_map(|target| if let CompiledDefinition::Done(quick) = target { Some(quick) } else { None })
            .collect()
    }

    /// Compiles the document for the arguments of a call: an object that refuses keys which the schema does not name, unless the schema
    /// has a rule for such keys or names none at all.
    pub(super) fn compile_root(&mut self) -> FastCheck {
        let Node::Object(root) = self.root else {
            return self.compile(self.root);
        };
        let plain = Keywords::read(root, true).filter(|keywords| {
            let kinds = keywords.kinds.unwrap_or(KindSet::ALL);
            kinds.meets(KindSet::OBJECT)
                && !keywords.listed
                && !root.contains_key("$ref")
                && !root.contains_key("anyOf")
        });
        let fields = plain.and_then(|_| self.all_fields(root));
        match fields {
            Some(mut fields) => {
                if root.contains_key("properties") && !root.contains_key("additionalProperties") {
                    fields.rest = FastCheck::Undecided;
                }
                FastCheck::Object(Box::new(fields))
            }
            None => FastCheck::Undecided,
        }
    }

    /// Compiles a schema of the document.
    pub(super) fn compile(&mut self, schema: &'s Node) -> FastCheck {
        match schema {
            Node::Bool(true) => FastCheck::Anything,
            Node::Object(schema) if self.depth < DEPTH => {
                self.depth += 1;
                let is_root = self.root.as_object().is_some_and(|root| std::ptr::eq(root, schema));
                let quick = self.object(schema, is_root).unwrap_or(FastCheck::Undecided);
                self.depth -= 1;
                quick
            }
            _ => FastCheck::Undecided,
        }
    }

    fn object(&mut self, schema: &'s Entries, is_root: bool) -> Option<FastCheck> {
        let keywords = Keywords::read(schema, is_root)?;
        // By far the most common schema: a type and its description.
        if keywords.plain {
            return Some(keywords.kinds.map_or(FastCheck::Anything, by_kinds));
        }
        let kinds = keywords.kinds.unwrap_or(KindSet::ALL);
        let mut parts = Vec::with_capacity(1);
        if let Some(format) = keywords.format.and_then(|name| TextFormat::named(name, self.formats)) {
            let text = FastCheck::Formatted(format, self.formats);
            let is_combined = keywords.listed || schema.contains_key("$ref") || schema.contains_key("anyOf");
            if kinds == KindSet::STRING && !keywords.structured && !is_combined {
                return Some(text);
            }
            // A format only applies to strings.
            let others = FastCheck::Kinds(KindSet::ALL.without(KindSet::STRING));
            parts.push(FastCheck::AnyOf([text, others].into()));
        }
        if keywords.structured {
            self.structure(schema, kinds, &mut parts)?;
        } else if keywords.kinds.is_some() && !keywords.listed {
            parts.push(by_kinds(kinds));
        }
        if keywords.listed {
            parts.push(listed(schema, keywords.kinds)?);
        }
        if let Some(reference) = schema.get("$ref") {
            parts.push(self.reference(reference.as_str()?)?);
        }
        if let Some(branches) = schema.get("anyOf") {
            let branches: Vec<FastCheck> = branches.as_array()?.iter().map(|branch| self.compile(branch)).collect();
            parts.push(any_of(branches));
        }
        Some(if parts.len() == 1 { parts.pop()? } else { FastCheck::AllOf(parts.into()) })
    }

    /// Compiles limits, items and fields. Each applies only to its own kind, so that a schema with several kinds becomes alternatives.
    fn structure(&mut self, schema: &'s Entries, kinds: KindSet, parts: &mut Vec<FastCheck>) -> Option<()> {
        let items = if kinds.meets(KindSet::ARRAY) { self.items(schema)? } else { None };
        let fields = if kinds.meets(KindSet::OBJECT) { self.fields(schema)? } else { None };
        let mut others = kinds;
        let mut alternatives = Vec::with_capacity(1);
        if let Some(items) = items {
            others = others.without(KindSet::ARRAY);
            alternatives.push(FastCheck::Array(Box::new(items)));
        }
        if let Some(fields) = fields {
            others = others.without(KindSet::OBJECT);
            alternatives.push(FastCheck::Object(Box::new(fields)));
        }
        if others != KindSet::NONE {
            let limits = FastLimits {
                kinds: others,
                bounds: Bounds::read(schema)?,
                text: size(schema, "minLength", "maxLength")?,
                items: size(schema, "minItems", "maxItems")?,
                entries: size(schema, "minProperties", "maxProperties")?,
            };
            alternatives.push(FastCheck::Limits(Box::new(limits)));
        }
        parts.push(if alternatives.len() == 1 { alternatives.pop()? } else { FastCheck::AnyOf(alternatives.into()) });
        Some(())
    }

    #[allow(clippy::option_option)]
    fn items(&mut self, schema: &'s Entries) -> Option<Option<FastArray>> {
        let unique = match schema.get("uniqueItems") {
            None => false,
            Some(unique) => unique.as_bool()?,
        };
        let first = match schema.get("prefixItems") {
            None => Vec::new(),
            Some(_) if !self.modern => return None,
            Some(first) => first.as_array()?.iter().map(|item| self.compile(item)).collect(),
        };
        let rest = schema.get("items").map_or(FastCheck::Anything, |items| self.compile(items));
        if !unique && first.is_empty() && matches!(rest, FastCheck::Anything) {
            return Some(None);
        }
        Some(Some(FastArray { size: size(schema, "minItems", "maxItems")?, first: first.into(), rest, unique }))
    }

    #[allow(clippy::option_option)]
    fn fields(&mut self, schema: &'s Entries) -> Option<Option<FastObject>> {
        let asks =
            ["properties", "required", "additionalProperties"].iter().any(|keyword| schema.contains_key(keyword));
        if asks { Some(Some(self.all_fields(schema)?)) } else { Some(None) }
    }

    fn all_fields(&mut self, schema: &'s Entries) -> Option<FastObject> {
        let rest = schema.get("additionalProperties").map_or(FastCheck::Anything, |rest| self.compile(rest));
        let mut fields = Vec::new();
        if let Some(properties) = schema.get("properties") {
            let properties = properties.as_object()?;
            fields.reserve_exact(properties.len());
            for (name, property) in properties.iter() {
                fields.push(FastField { name: name.into(), required: false, check: self.compile(property) });
            }
        }
        let mut order = FastObject::sorted(&fields);
        let mut required = 0;
        if let Some(names) = schema.get("required") {
            for name in names.as_array()? {
                let name = name.as_str()?;
                if let Ok(at) = order.binary_search_by(|index| (*fields[*index as usize].name).cmp(name)) {
                    let field = &mut fields[order[at] as usize];
                    required += usize::from(!field.required);
                    field.required = true;
                } else {
                    // Required but not described, so it is checked like other entries.
                    let check =
                        if matches!(rest, FastCheck::Anything) { FastCheck::Anything } else { FastCheck::Undecided };
                    fields.push(FastField { name: name.into(), required: true, check });
                    required += 1;
                    order = FastObject::sorted(&fields);
                }
            }
        }
        let size = size(schema, "minProperties", "maxProperties")?;
        Some(FastObject { size, named: fields.into(), order, required, rest })
    }

    /// Compiles a reference. Only whole definitions are followed: a pointer into a schema with an `$id` of its own would be misread.
    fn reference(&mut self, reference: &'s str) -> Option<FastCheck> {
        let (place, name) = reference.strip_prefix("#/")?.split_once('/')?;
        if !matches!(place, "$defs" | "definitions") || name.contains(['/', '~', '%']) {
            return None;
        }
        match self.shared.get(reference) {
            Some(CompiledDefinition::Open(open)) => return Some(FastCheck::Recursive(Weak::clone(open))),
            Some(CompiledDefinition::Done(done)) => return Some(FastCheck::Shared(Arc::clone(done))),
            None => {}
        }
        let root = self.root;
        let target = root.get(place)?.get(name)?;
        let compiled = Arc::new_cyclic(|open| {
            self.shared.insert(reference, CompiledDefinition::Open(Weak::clone(open)));
            self.compile(target)
        });
        self.shared.insert(reference, CompiledDefinition::Done(Arc::clone(&compiled)));
        Some(FastCheck::Shared(compiled))
    }
}

impl FastObject {
    fn sorted(fields: &[FastField]) -> Box<[u32]> {
        let mut order: Box<[u32]> = (0..).take(fields.len()).collect();
        order.sort_unstable_by(|one, other| fields[*one as usize].name.cmp(&fields[*other as usize].name));
        order
    }
}

fn by_kinds(kinds: KindSet) -> FastCheck {
    match kinds {
        KindSet::STRING => FastCheck::String,
        KindSet::INTEGER => FastCheck::Integer,
        KindSet::NUMBER => FastCheck::Number,
        KindSet::BOOLEAN => FastCheck::Boolean,
        _ => FastCheck::Kinds(kinds),
    }
}

/// Alternatives. If they only limit the kind, they become one set of kinds.
fn any_of(branches: Vec<FastCheck>) -> FastCheck {
    let kinds = branches.iter().try_fold(KindSet::NONE, |kinds, branch| {
        Some(kinds.or(match branch {
            FastCheck::String => KindSet::STRING,
            FastCheck::Integer => KindSet::INTEGER,
            FastCheck::Number => KindSet::NUMBER,
            FastCheck::Boolean => KindSet::BOOLEAN,
            FastCheck::Kinds(kinds) => *kinds,
            _ => return None,
        }))
    });
    kinds.map_or_else(|| FastCheck::AnyOf(branches.into()), by_kinds)
}

/// The assertions of any draft that are not compiled here. A schema with one of them is left to the validator.
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

/// A summary of the keywords of a schema, made in one pass.
struct Keywords<'s> {
    kinds: Option<KindSet>,
    /// True if only `type` asserts anything.
    plain: bool,
    /// True if an `enum` or a `const` lists the allowed values.
    listed: bool,
    format: Option<&'s str>,
    /// True if there are limits on parts or sizes.
    structured: bool,
}

impl<'s> Keywords<'s> {
    /// Reads the keywords; `None` if one of them is left to the validator.
    fn read(schema: &'s Entries, is_root: bool) -> Option<Self> {
        let mut keywords = Keywords { kinds: None, plain: true, listed: false, format: None, structured: false };
        for (keyword, value) in schema.iter() {
            match keyword {
                "type" => keywords.kinds = Some(kinds(value)?),
                "description" | "title" | "default" | "examples" | "$defs" | "definitions" => {}
                "format" => (keywords.plain, keywords.format) = (false, value.as_str()),
                "$ref" | "anyOf" => keywords.plain = false,
                "enum" | "const" => (keywords.plain, keywords.listed) = (false, true),
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
                | "exclusiveMaximum" => (keywords.plain, keywords.structured) = (false, true),
                // An `$id` changes what references mean, unless it is that of the whole document.
                "$schema" | "$id" if is_root => {}
                other if UNCOMPILED.binary_search(&other).is_ok() => return None,
                _ => {}
            }
        }
        Some(keywords)
    }
}

/// The kinds of a `type`. A float such as `1.0` is an integer to JSON Schema, but not here: it is declined, never wrong.
fn kinds(value: &Node) -> Option<KindSet> {
    match value {
        Node::String(name) => KindSet::named(name),
        Node::Array(names) => {
            names.iter().try_fold(KindSet::NONE, |kinds, name| Some(kinds.or(KindSet::named(name.as_str()?)?)))
        }
        _ => None,
    }
}

/// The check for an `enum` or a `const`, as far as a `type` beside it allows.
fn listed(schema: &Entries, kinds: Option<KindSet>) -> Option<FastCheck> {
    let members = match (schema.get("enum"), schema.get("const")) {
        (Some(Node::Array(members)), None) => members.as_slice(),
        (None, Some(member)) => std::slice::from_ref(member),
        _ => return None,
    };
    let mut scalars = members.iter().map(scalar).collect::<Option<Vec<Scalar>>>()?;
    scalars.retain(|scalar| kinds.is_none_or(|kinds| kinds.has(scalar.kind())));
    if !scalars.iter().all(|scalar| matches!(scalar, Scalar::String(_))) {
        return Some(FastCheck::Scalars(scalars.into()));
    }
    let strings =
        scalars.into_iter().filter_map(|scalar| if let Scalar::String(text) = scalar { Some(text) } else { None });
    Some(FastCheck::Strings(strings.collect()))
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
        Node::String(text) => Scalar::String(text.as_ref().into()),
        Node::Array(_) | Node::Object(_) => return None,
    })
}

/// A range of sizes; `None` if one is not a size.
fn size(schema: &Entries, least: &str, most: &str) -> Option<SizeRange> {
    let read = |keyword: &str, default: usize| match schema.get(keyword) {
        None => Some(default),
        Some(value) => usize::try_from(value.as_u64()?).ok(),
    };
    Some(SizeRange { least: read(least, 0)?, most: read(most, usize::MAX)? })
}
