//! Native tools over [`Artifacts`], with the names, messages and results of ArtifactFlow.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::artifacts::{Artifact, Artifacts, Refusal, Update, failed};
use super::matching::MatchType;
use super::select::{self, Selection};
use crate::call::{Code, ToolResponse};
use crate::native::run::blocking;
use crate::native::{NativeTool, ToolContext, ToolError};
use crate::policy::ToolKind;

/// The number of letters of a quotation in a result.
const SHOWN: usize = 200;

/// The names of the tools, in the order of [`tools`].
pub const TOOL_NAMES: [&str; 8] = [
    "create_artifact",
    "update_artifact",
    "rewrite_artifact",
    "read_artifact",
    "list_artifacts",
    "artifact_history",
    "diff_artifact",
    "delete_artifact",
];

#[derive(Debug, Deserialize, JsonSchema)]
struct Create {
    /// The id of the artifact, unique in the session.
    id: String,
    /// The kind of content, for example "markdown", "json" or "python".
    #[serde(default = "markdown")]
    content_type: String,
    /// The title.
    title: String,
    /// The content.
    content: String,
}

fn markdown() -> String {
    "markdown".to_owned()
}

#[derive(Debug, Deserialize, JsonSchema)]
struct UpdateText {
    /// The id of the artifact.
    id: String,
    /// The text to replace: quote it exactly, with enough of its surroundings to be unique.
    old_str: String,
    /// The new text.
    new_str: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Rewrite {
    /// The id of the artifact.
    id: String,
    /// The new content, all of it.
    content: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Read {
    /// The id of the artifact.
    id: String,
    /// The version, by default the last one.
    #[serde(default)]
    version: Option<u64>,
    /// The first line to read, from 1.
    #[serde(default)]
    first_line: Option<u64>,
    /// The last line to read.
    #[serde(default)]
    last_line: Option<u64>,
    /// The path of a value in JSON content, for example "items[0].name" or "items[*].id".
    #[serde(default)]
    path: Option<String>,
    /// A regular expression: only the lines that match are read, with their numbers.
    #[serde(default)]
    pattern: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct List {
    /// The ids of artifacts to list with their whole content.
    #[serde(default)]
    full: Vec<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct History {
    /// The id of the artifact.
    id: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Diff {
    /// The id of the artifact.
    id: String,
    /// The older version, by default the one before the newer.
    #[serde(default)]
    from_version: Option<u64>,
    /// The newer version, by default the last one.
    #[serde(default)]
    to_version: Option<u64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct DeleteArtifact {
    /// The id of the artifact.
    id: String,
}

/// A refusal is a response of its own, so that the model reads the message alone.
type Answer = Result<ToolResponse, Refusal>;

/// The tools, which work on the artifacts of the session of each call.
#[must_use]
pub fn tools(artifacts: &Artifacts) -> Vec<NativeTool> {
    TOOL_NAMES.into_iter().filter_map(|name| tool(artifacts, name)).collect()
}

/// One of the tools, by its name.
#[must_use]
pub fn tool(artifacts: &Artifacts, name: &str) -> Option<NativeTool> {
    let tool = match name {
        "create_artifact" => bind(
            artifacts,
            "create_artifact",
            "Create an artifact: a versioned text that you can read and edit later, such as a plan, a report or a program.",
            create,
        ),
        "update_artifact" => bind(
            artifacts,
            "update_artifact",
            "Replace a part of an artifact. The text to replace must occur once. For changes of most of the content use \
             rewrite_artifact.",
            update,
        ),
        "rewrite_artifact" => bind(artifacts, "rewrite_artifact", "Replace the whole content of an artifact.", rewrite),
        "read_artifact" => bind(
            artifacts,
            "read_artifact",
            "Read an artifact or one of its older versions: all of it, some lines, a value of JSON content, or the lines that \
             match a regular expression.",
            read,
        ),
        "list_artifacts" => {
            bind(artifacts, "list_artifacts", "List the artifacts of this session, with previews.", list)
        }
        "artifact_history" => bind(artifacts, "artifact_history", "List the versions of an artifact.", history),
        "diff_artifact" => {
            bind(artifacts, "diff_artifact", "Compare two versions of an artifact, as a unified diff.", diff)
        }
        "delete_artifact" => bind(artifacts, "delete_artifact", "Delete an artifact with all its versions.", delete),
        _ => return None,
    };
    let kind = match name {
        "create_artifact" | "update_artifact" | "rewrite_artifact" => ToolKind::Edit,
        "delete_artifact" => ToolKind::Delete,
        _ => ToolKind::Read,
    };
    Some(tool.with_kind(kind).with_tags(["artifact"]))
}

fn bind<P, F, Fut>(artifacts: &Artifacts, name: &str, description: &str, function: F) -> NativeTool
where
    P: JsonSchema + serde::de::DeserializeOwned + Send + 'static,
    F: Fn(Artifacts, Option<Arc<str>>, P) -> Fut + Copy + Send + Sync + 'static,
    Fut: Future<Output = Answer> + Send + 'static,
{
    let artifacts = artifacts.clone();
    NativeTool::new(name, description, move |context: ToolContext, parameters: P| {
        let answer = function(artifacts.clone(), context.session.clone(), parameters);
        async move { Ok::<_, ToolError>(answer.await.unwrap_or_else(|refusal| refused(&refusal))) }
    })
}

fn refused(refusal: &Refusal) -> ToolResponse {
    let response = ToolResponse { code: Some(Code::Failed), ..ToolResponse::of_text(format!("Error: {refusal}")) };
    match refusal {
        Refusal::Mismatch(mismatch) if !mismatch.lines().is_empty() => {
            response.with_metadata("candidate_lines", json!(mismatch.lines()))
        }
        _ => response,
    }
}

async fn create(artifacts: Artifacts, session: Option<Arc<str>>, new: Create) -> Answer {
    let Create { id, content_type, title, content } = new;
    artifacts.create(session.as_deref(), &id, &content_type, &title, content).await?;
    Ok(json!({"message": format!("Created artifact '{id}'")}).into())
}

async fn update(artifacts: Artifacts, session: Option<Arc<str>>, change: UpdateText) -> Answer {
    let UpdateText { id, old_str, new_str } = change;
    let Update { version, found, replaced } = artifacts.update(session.as_deref(), &id, &old_str, &new_str).await?;
    let mut data = json!({"message": format!("Successfully updated artifact '{id}' (v{version})"), "version": version});
    let is_exact = found.kind == MatchType::Exact;
    let cut = |text: &str| text.chars().take(SHOWN).collect::<String>();
    if let (false, Some(data)) = (is_exact, data.as_object_mut()) {
        let note = "The text was found although it was not quoted exactly. Compare expected and matched.";
        let fuzzy = json!({
            "similarity": format!("{:.1}%", found.similarity * 100.0),
            "expected": cut(&old_str),
            "matched": cut(&replaced),
            "note": note,
        });
        data.insert("fuzzy_match".to_owned(), fuzzy);
    }
    let response = ToolResponse::from(data)
        .with_metadata("match_type", found.kind.as_str().into())
        .with_metadata("similarity", json!(found.similarity))
        .with_metadata("changes", json!([[replaced, new_str]]));
    if is_exact {
        return Ok(response);
    }
    Ok(response.with_metadata("expected_text", old_str.into()).with_metadata("matched_text", replaced.into()))
}

async fn rewrite(artifacts: Artifacts, session: Option<Arc<str>>, new: Rewrite) -> Answer {
    let Rewrite { id, content } = new;
    let version = artifacts.rewrite(session.as_deref(), &id, content).await?;
    Ok(json!({"message": format!("Successfully rewritten artifact '{id}' (v{version})"), "version": version}).into())
}

/// The fields of an artifact in a result.
fn fields(artifact: Artifact, content: &str, updated_at: Option<String>) -> Map<String, Value> {
    Map::from_iter([
        ("id".to_owned(), artifact.id.into()),
        ("content_type".to_owned(), artifact.content_type.into()),
        ("title".to_owned(), artifact.title.into()),
        (content.to_owned(), artifact.content.into()),
        ("version".to_owned(), artifact.version.into()),
        ("updated_at".to_owned(), updated_at.into()),
    ])
}

async fn read(artifacts: Artifacts, session: Option<Arc<str>>, wanted: Read) -> Answer {
    let is_by_lines = wanted.first_line.is_some() || wanted.last_line.is_some();
    let refused = failed::<String>("read");
    if [is_by_lines, wanted.path.is_some(), wanted.pattern.is_some()].into_iter().filter(|is_given| *is_given).count()
        > 1
    {
        return Err(refused("give lines, a path or a pattern, not several of them".to_owned()));
    }
    let mut artifact = artifacts.read(session.as_deref(), &wanted.id, wanted.version).await?;
    let content = std::mem::take(&mut artifact.content);
    let selecting = blocking(move || match (&wanted.path, &wanted.pattern) {
        (Some(path), _) => select::at_path(&content, path),
        (None, Some(pattern)) => select::matching(&content, pattern),
        (None, None) if is_by_lines => select::lines(&content, wanted.first_line, wanted.last_line),
        (None, None) => Ok(Selection { content, about: Map::new() }),
    });
    let Selection { content, about } = selecting.await.map_err(failed("read"))?.map_err(refused)?;
    artifact.content = content;
    let updated_at = wanted.version.is_none().then(|| artifact.updated_at.to_string());
    let mut data = fields(artifact, "content", updated_at);
    if !about.is_empty() {
        data.insert("selection".to_owned(), Value::Object(about));
    }
    Ok(Value::Object(data).into())
}

async fn list(artifacts: Artifacts, session: Option<Arc<str>>, wanted: List) -> Answer {
    let mut listed = Vec::new();
    for artifact in artifacts.list(session.as_deref()).await? {
        let updated_at = Some(artifact.updated_at.to_string());
        listed.push(Value::Object(if wanted.full.contains(&artifact.id) {
            let whole = artifacts.read(session.as_deref(), &artifact.id, None).await?;
            fields(whole, "content", updated_at)
        } else {
            fields(artifact, "preview", updated_at)
        }));
    }
    Ok(json!({"artifacts": listed}).into())
}

async fn history(artifacts: Artifacts, session: Option<Arc<str>>, wanted: History) -> Answer {
    let versions = artifacts.history(session.as_deref(), &wanted.id).await?;
    let version = |artifact: Artifact| {
        json!({
            "version": artifact.version,
            "update_type": artifact.update_type.as_str(),
            "updated_at": artifact.updated_at.to_string(),
        })
    };
    let versions: Vec<Value> = versions.into_iter().map(version).collect();
    Ok(json!({"id": wanted.id, "versions": versions}).into())
}

async fn diff(artifacts: Artifacts, session: Option<Arc<str>>, wanted: Diff) -> Answer {
    let Diff { id, from_version, to_version } = wanted;
    let (from, to, diff) = artifacts.diff(session.as_deref(), &id, from_version, to_version).await?;
    Ok(json!({"id": id, "from_version": from, "to_version": to, "diff": diff}).into())
}

async fn delete(artifacts: Artifacts, session: Option<Arc<str>>, unwanted: DeleteArtifact) -> Answer {
    artifacts.delete(session.as_deref(), &unwanted.id).await?;
    Ok(json!({"message": format!("Deleted artifact '{}'", unwanted.id)}).into())
}
