//! The tools in the form of the protocol, cached until they change.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use rmcp::model::{JsonObject, MetaObject, Tool, ToolAnnotations};
use serde_json::{Value, json};

use super::host::ClientTools;
use crate::mcp::Definition;
use crate::schema::Node;
use crate::schema::check::Checker;
use crate::sync::lock;

/// A list of tools.
pub(super) struct Listing {
    /// The tools in the form of the protocol.
    pub(super) tools: Vec<Tool>,
    /// The structured results of the tools that declare one.
    outputs: HashMap<String, OutputSchema>,
}

/// The schema of a structured result, with its validator, which the first result needs.
pub(super) struct OutputSchema {
    schema: Arc<JsonObject>,
    checker: OnceLock<Checker>,
    /// Set when the developer was told of a result that does not fit.
    is_reported: AtomicBool,
}

impl Listing {
    fn new(definitions: Vec<Definition>) -> Self {
        let mut listing = Self { tools: Vec::with_capacity(definitions.len()), outputs: HashMap::new() };
        for definition in definitions {
            let Definition { name, title, description, input_schema, output_schema, annotations, meta } = definition;
            let output_schema = output_schema.map(Arc::new);
            if let Some(schema) = output_schema.clone() {
                listing.outputs.insert(name.clone(), OutputSchema::new(schema));
            }
            let mut tool = Tool::default();
            tool.name = name.into();
            tool.title = title;
            tool.description = description.map(Into::into);
            tool.input_schema = Arc::new(input_schema);
            tool.output_schema = output_schema;
            tool.annotations = annotations.and_then(annotations_of);
            tool.meta = meta.map(MetaObject);
            listing.tools.push(tool);
        }
        listing
    }

    /// The schema of the structured results of a tool, if it declares one.
    pub(super) fn output(&self, tool: &str) -> Option<&OutputSchema> {
        self.outputs.get(tool)
    }
}

impl OutputSchema {
    fn new(schema: Arc<JsonObject>) -> Self {
        Self { schema, checker: OnceLock::new(), is_reported: AtomicBool::new(false) }
    }

    /// The structured content of a result: an object that fits the schema.
    ///
    /// A value that is not an object itself is under `result`, as its schema says.
    ///
    /// # Errors
    ///
    /// The reason why the value does not fit.
    pub(super) fn structured(&self, value: Value) -> Result<Value, String> {
        let compile = || Checker::of(&Node::from(Value::Object((*self.schema).clone())));
        let checker: &Checker = self.checker.get_or_init(compile);
        let problem_of = |candidate: &Value| {
            if checker.accepts(candidate) { None } else { checker.first_problem(candidate, "structuredContent") }
        };
        let unwrapped = value.is_object().then(|| problem_of(&value));
        if unwrapped == Some(None) {
            return Ok(value);
        }
        let wrapped = json!({"result": value});
        match problem_of(&wrapped) {
            None => Ok(wrapped),
            Some(problem) => Err(unwrapped.flatten().unwrap_or(problem)),
        }
    }

    /// True for the first result that does not fit.
    pub(super) fn is_first_mismatch(&self) -> bool {
        !self.is_reported.swap(true, Ordering::Relaxed)
    }
}

/// The hints about a tool, which have other types in a definition that is not our own.
fn annotations_of(annotations: JsonObject) -> Option<ToolAnnotations> {
    serde_json::from_value(Value::Object(annotations)).ok()
}

/// The revisions of a list: those of the host and of the client.
pub(super) type Revisions = (u64, u64);

/// A list that is made again when its revisions have changed.
#[derive(Default)]
pub(super) struct ListingCache(Mutex<Option<(Revisions, Arc<Listing>)>>);

impl ListingCache {
    /// The list, which is made if there is none for these revisions.
    pub(super) async fn get(&self, revisions: Revisions, tools: &dyn ClientTools) -> Arc<Listing> {
        let cached = lock(&self.0).as_ref().filter(|(made_at, _)| *made_at == revisions).map(|(_, list)| list.clone());
        if let Some(listing) = cached {
            return listing;
        }
        // The revisions were read before, so that a change in between is noticed by the next request.
        let listing = Arc::new(Listing::new(tools.list().await));
        *lock(&self.0) = Some((revisions, listing.clone()));
        listing
    }
}
