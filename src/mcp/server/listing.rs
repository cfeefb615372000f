//! The tools in the form of the protocol, cached until they change.

use std::collections::HashMap;
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
struct OutputSchema {
    schema: Arc<JsonObject>,
    checker: OnceLock<Checker>,
}

impl Listing {
    fn new(definitions: Vec<Definition>) -> Self {
        let mut listing = Self { tools: Vec::with_capacity(definitions.len()), outputs: HashMap::new() };
        for definition in definitions {
            let Definition { name, title, description, input_schema, output_schema, annotations, meta } = definition;
            let output_schema = output_schema.map(Arc::new);
            if let Some(schema) = output_schema.clone() {
                listing.outputs.insert(name.clone(), OutputSchema { schema, checker: OnceLock::new() });
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

    /// The structured content of a result: an object that fits the declared schema.
    ///
    /// A value that is not an object itself is under `result`, as its schema says.
    pub(super) fn structured(&self, tool: &str, value: &Value) -> Option<Value> {
        let output = self.outputs.get(tool)?;
        let compile = || Checker::of(&Node::from(Value::Object((*output.schema).clone())));
        let checker: &Checker = output.checker.get_or_init(compile);
        let fits = |candidate: &Value| checker.accepts(candidate) || checker.first_problem(candidate, "").is_none();
        if value.is_object() && fits(value) {
            return Some(value.clone());
        }
        let wrapped = json!({"result": value});
        fits(&wrapped).then_some(wrapped)
    }

    /// True if the results of a tool have structured content.
    pub(super) fn has_output(&self, tool: &str) -> bool {
        self.outputs.contains_key(tool)
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
