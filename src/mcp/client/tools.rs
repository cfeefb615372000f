//! The tools of a server: the list in pages, the comparison with the list before, and the changes while a connection lives.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use rmcp::model::{ClientRequest, ListToolsRequest, PaginatedRequestParams, SubscriptionFilter};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::connection::{Connection, Failure};
use super::greeting::Greeting;
use super::message;
use super::shared::Shared;
use super::{ListedTools, SkippedTool};
use crate::mcp::outline::{elements, outline, weight_of};
use crate::mcp::{Definition, Digest};
use crate::schema::check::Checker;

/// Maximum number of tools, of pages, and of bytes of a list.
const MAX_TOOLS: usize = 20_000;
const MAX_PAGES: usize = 1_000;
const MAX_WEIGHT: usize = 16 << 20;
/// The largest weight, and the number of levels, of a definition: no provider takes one of a tenth of this.
const MAX_DEFINITION: usize = 1 << 20;
const MAX_DEFINITION_DEPTH: usize = 120;
/// The longest name of a skipped definition that is reported.
const LONGEST_NAME: usize = 200;
/// The pause between two lists, however often the server reports a change.
const PAUSE: Duration = Duration::from_millis(300);
/// The pause before a list that failed is tried again.
const RETRY: Duration = Duration::from_secs(2);
/// The longest pause between two subscriptions.
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// A tool of the last list.
pub(super) struct Entry {
    pub(super) definition: Arc<Definition>,
    pub(super) digest: Digest,
    /// The validator of structured results; none without a schema, or if the schema is invalid.
    output: OnceLock<Option<Checker>>,
}

impl Entry {
    pub(super) fn new(definition: Arc<Definition>) -> Self {
        let digest = definition.digest();
        Self { definition, digest, output: OnceLock::new() }
    }

    /// The first problem of a structured result; none if it fits, or if there is no valid schema.
    pub(super) fn problem_of(&self, structured: Option<&Value>) -> Option<String> {
        let schema = self.definition.output_schema.as_ref()?;
        let checker = self.output.get_or_init(|| {
            let compiled = Checker::compile(&Value::Object(schema.clone()));
            compiled
                .inspect_err(|error| {
                    let tool = &self.definition.name;
                    tracing::warn!(target: "toolcrib::mcp", "ignored the output schema of tool `{tool}`: {error}");
                })
                .ok()
        });
        let checker = checker.as_ref()?;
        match structured {
            None => Some("the result has no structured content".to_owned()),
            Some(value) if checker.accepts(value) => None,
            Some(value) => checker.first_problem(value, "structuredContent"),
        }
    }
}

/// The last list of a server's tools.
#[derive(Default)]
pub(super) struct Catalogue {
    pub(super) listed: Arc<ListedTools>,
    pub(super) entries: HashMap<String, Arc<Entry>>,
}

impl Catalogue {
    /// Makes the catalogue of a list. Definitions that are the same as before keep their entries.
    pub(super) fn of(mut listed: ListedTools, before: Option<&Self>) -> Self {
        let mut entries = HashMap::with_capacity(listed.tools.len());
        for tool in &mut listed.tools {
            let known = before.and_then(|before| before.entries.get(&tool.name));
            let entry = match known {
                Some(known) if known.definition == *tool => known.clone(),
                _ => Arc::new(Entry::new(tool.clone())),
            };
            *tool = entry.definition.clone();
            entries.insert(tool.name.clone(), entry);
        }
        Self { listed: Arc::new(listed), entries }
    }

    /// True if both have the same tools with the same digests, and the same skipped ones.
    pub(super) fn equals(&self, other: &Self) -> bool {
        let is_same = |(name, entry): (&String, &Arc<Entry>)| {
            other.entries.get(name).is_some_and(|other| other.digest == entry.digest)
        };
        self.listed.problems == other.listed.problems
            && self.entries.len() == other.entries.len()
            && self.entries.iter().all(is_same)
    }
}

/// Reads all pages of the list of tools.
pub(super) async fn list(connection: &Arc<Connection>) -> Result<ListedTools, Unlisted> {
    let mut listed = ListedTools::default();
    let (mut names, mut cursors, mut weight) = (HashSet::new(), HashSet::new(), 0);
    let mut cursor: Option<String> = None;
    for _ in 0..MAX_PAGES {
        let params = cursor.take().map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
        let request = params.map_or_else(ListToolsRequest::default, ListToolsRequest::with_param);
        let page = connection.send(ClientRequest::ListToolsRequest(request)).await?.result().await?;
        let [tools, next] = outline(&page, ["tools", "nextCursor"]).members;
        let Some(tools) = tools.filter(|tools| tools.starts_with('[')) else {
            return Err(Unlisted::Invalid("`tools` must be a list".to_owned()));
        };
        for tool in elements(tools) {
            weight += add(&mut listed, &mut names, tool);
            if listed.tools.len() + listed.problems.len() > MAX_TOOLS || weight > MAX_WEIGHT {
                return Err(Unlisted::Invalid(format!("more than {MAX_TOOLS} tools or {} MiB", MAX_WEIGHT >> 20)));
            }
        }
        let next: Option<Value> = next.map(|next| message::parse(next, MAX_DEFINITION).unwrap_or_default());
        match next {
            None | Some(Value::Null) => return Ok(listed),
            Some(Value::String(next)) if cursors.insert(next.clone()) => cursor = Some(next),
            Some(Value::String(_)) => return Err(Unlisted::Invalid("a cursor comes twice".to_owned())),
            Some(_) => return Err(Unlisted::Invalid("`nextCursor` must be text".to_owned())),
        }
    }
    Err(Unlisted::Invalid(format!("more than {MAX_PAGES} pages")))
}

/// The reason why there is no list.
pub(super) enum Unlisted {
    Failed(Failure),
    Invalid(String),
}

impl From<Failure> for Unlisted {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// Adds a tool, which is JSON text, to the list or to the skipped ones; returns its weight.
fn add(listed: &mut ListedTools, names: &mut HashSet<String>, text: &str) -> usize {
    let position = listed.tools.len() + listed.problems.len() + 1;
    let (mut name, mut weight) = (None, 0);
    let problem = read(text).and_then(|tool| {
        weight = weight_of(&tool);
        let definition = Definition::read(&tool).map_err(|error| error.to_string())?;
        if !names.insert(definition.name.clone()) {
            name = Some(definition.name);
            return Err("the server lists another tool of this name before it".to_owned());
        }
        listed.tools.push(Arc::new(definition));
        Ok(())
    });
    if let Err(reason) = problem {
        let name = name.or_else(|| serde_json::from_str(outline(text, ["name"]).members[0]?).ok());
        let name = name.map(|name: String| name.chars().take(LONGEST_NAME).collect::<String>());
        tracing::warn!(target: "toolcrib::mcp", "skipped tool {name:?}: {reason}");
        weight += reason.len() + name.as_ref().map_or(0, String::len);
        listed.problems.push(SkippedTool { tool: name, position, reason });
    }
    weight
}

/// Parses a definition, unless it is too large.
fn read(text: &str) -> Result<Value, String> {
    let found = outline(text, []);
    if found.depth > MAX_DEFINITION_DEPTH {
        return Err(format!("its definition is nested more than {MAX_DEFINITION_DEPTH} levels deep"));
    }
    if found.weight > MAX_DEFINITION {
        return Err("its definition has too many values".to_owned());
    }
    message::parse(text, MAX_DEFINITION)
}

/// Lists the tools again whenever the server reports a change, until the connection ends.
pub(super) async fn keep_current(shared: Weak<Shared>, connection: Weak<Connection>) {
    loop {
        let Some(routes) = connection.upgrade().map(|connection| connection.routes.clone()) else { return };
        let is_lost = tokio::select! {
            () = routes.lost.cancelled() => true,
            () = routes.changed.notified() => false,
        };
        let (Some(shared), Some(connection)) = (shared.upgrade(), connection.upgrade()) else { return };
        if is_lost {
            shared.lost(&connection, &connection.describe_end().await);
            return;
        }
        // A failure is reported to the calls that wait for the list.
        let is_listed = shared.list_on(&connection).await.is_ok();
        drop((shared, connection));
        sleep(if is_listed { PAUSE } else { RETRY }).await;
        if !is_listed {
            routes.changed.notify_one();
        }
    }
}

/// Subscribes to changes of the list, as the newest version of the protocol needs, until the connection ends.
pub(super) async fn subscribe(connection: Weak<Connection>) {
    let mut pause = PAUSE;
    loop {
        let Some(current) = connection.upgrade() else { return };
        let offers = current.info.capabilities.pointer("/tools/listChanged") == Some(&Value::Bool(true));
        if current.greeting != Greeting::Discover || !offers {
            return;
        }
        let (peer, routes) = (current.peer().clone(), current.routes.clone());
        drop(current);
        let filter = SubscriptionFilter::builder().tools_list_changed().build();
        tokio::select! {
            () = routes.lost.cancelled() => return,
            opened = peer.listen(filter) => if let Ok(mut subscription) = opened {
                // A change may have been missed.
                routes.note_change();
                let began = Instant::now();
                // The notifications themselves are noted where they arrive.
                tokio::select! {
                    () = routes.lost.cancelled() => return,
                    _ = subscription.next() => {}
                }
                if began.elapsed() > MAX_PAUSE {
                    pause = PAUSE;
                }
            },
        }
        sleep(pause).await;
        pause = (pause * 2).min(MAX_PAUSE);
    }
}
