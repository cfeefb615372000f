//! Artifacts in a store: created, read, edited, compared and deleted. A version is never changed, only added.

use std::fmt;
use std::pin::Pin;

use jiff::Timestamp;
use serde_json::{Value, json};
use similar::TextDiff;

use super::matching::{Match, MatchType, Mismatch, find};
use crate::bytes::{hex, random_bytes};
use crate::call::{KeepWhole, WholeText};
use crate::native::run::blocking;
use crate::store::{AddVersion, KeepDocument, Latest, RemoveDocument, Store, Summaries, Summary, Version, Versions};
use crate::{Error, Result};

/// The space of the artifacts without a session; with one, its id follows after a colon.
const SPACE: &str = "artifact";

/// The largest content, in bytes.
pub const MAX_CONTENT: usize = 16 * 1024 * 1024;

/// The number of letters of a preview.
const PREVIEW: usize = 200;

/// The time after which a comparison is finished less precisely.
const DIFF_TIME: std::time::Duration = std::time::Duration::from_millis(500);

string_enum! {
    /// The way in which a version was made.
    pub enum UpdateType {
        /// The first version.
        Create = "create",
        /// Text was replaced that was quoted exactly.
        Update = "update",
        /// Text was replaced that was quoted almost exactly.
        UpdateFuzzy = "update_fuzzy",
        /// All of the content was replaced.
        Rewrite = "rewrite",
    }
}

/// The artifacts of a store. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct Artifacts {
    store: Store,
}

/// One version of an artifact.
#[derive(Debug, Clone, PartialEq)]
pub struct Artifact {
    /// The id, unique in its session.
    pub id: String,
    /// The kind of content, such as `markdown`.
    pub content_type: String,
    /// The title.
    pub title: String,
    /// The content; in a list its beginning, in a history nothing.
    pub content: String,
    /// The number of the version, from 1.
    pub version: u64,
    /// The way in which the version was made.
    pub update_type: UpdateType,
    /// The time of the version.
    pub updated_at: Timestamp,
}

/// A change of an artifact by quotation.
#[derive(Debug, Clone, PartialEq)]
pub struct Update {
    /// The new version.
    pub version: u64,
    /// The place of the quotation in the version before.
    pub found: Match,
    /// The text that was replaced.
    pub replaced: String,
}

/// The reason why an artifact was not created, read or changed: the model's mistake, or a failure of the store.
#[derive(Debug, Clone, PartialEq)]
pub enum Refusal {
    /// The id of a new artifact is taken.
    Exists {
        /// The id.
        id: String,
    },
    /// There is no such artifact.
    NotFound {
        /// The id.
        id: String,
    },
    /// The artifact has no such version.
    NoVersion {
        /// The version.
        version: u64,
    },
    /// The quotation has no place, or several.
    Mismatch(Mismatch),
    /// Another writer was faster.
    Conflict,
    /// The store refused, or the content is too long.
    Failed {
        /// The attempted operation.
        doing: &'static str,
        /// The reason.
        reason: String,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exists { id } => write!(formatter, "Artifact '{id}' already exists in session"),
            Self::NotFound { id } => write!(formatter, "Artifact '{id}' not found"),
            Self::NoVersion { version } => write!(formatter, "Version {version} not found"),
            Self::Mismatch(mismatch) => mismatch.fmt(formatter),
            Self::Conflict => formatter.write_str("Version conflict: artifact was modified by another process"),
            Self::Failed { doing, reason } => write!(formatter, "Failed to {doing} artifact: {reason}"),
        }
    }
}

impl std::error::Error for Refusal {}

impl Artifact {
    /// The first version of an artifact.
    fn new(id: &str, content_type: &str, title: &str, content: String) -> Self {
        Self {
            id: id.to_owned(),
            content_type: content_type.to_owned(),
            title: title.to_owned(),
            content,
            version: 1,
            update_type: UpdateType::Create,
            updated_at: Timestamp::now(),
        }
    }
}

/// The error of an operation by its name.
pub(super) fn failed<E: fmt::Display>(doing: &'static str) -> impl Fn(E) -> Refusal {
    move |error| Refusal::Failed { doing, reason: error.to_string() }
}

fn space(session: Option<&str>) -> String {
    session.map_or(SPACE.to_owned(), |session| format!("{SPACE}:{session}"))
}

fn artifact(id: String, version: Version) -> Artifact {
    let about: Value = serde_json::from_slice(&version.about).unwrap_or_default();
    let field = |name: &str| about.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    Artifact {
        id,
        content_type: field("content_type"),
        title: field("title"),
        // The beginning of a content may end inside of a letter.
        content: match String::from_utf8(version.content) {
            Ok(content) => content,
            Err(cut) => {
                let valid = cut.utf8_error().valid_up_to();
                String::from_utf8_lossy(&cut.as_bytes()[..valid]).into_owned()
            }
        },
        version: version.number - version.first + 1,
        update_type: UpdateType::parse(&field("update_type")).unwrap_or(UpdateType::Rewrite),
        updated_at: version.changed,
    }
}

/// The operation that adds a version after the one with this number in the store.
fn version_of(
    doing: &'static str,
    session: Option<&str>,
    after: u64,
    artifact: &Artifact,
    changes: Option<(&str, &str)>,
) -> Result<AddVersion, Refusal> {
    if artifact.content.len() > MAX_CONTENT {
        let reason = format!("its content is larger than {MAX_CONTENT} bytes");
        return Err(Refusal::Failed { doing, reason });
    }
    let about = json!({
        "content_type": artifact.content_type,
        "title": artifact.title,
        "update_type": artifact.update_type.as_str(),
        "changes": changes.map(|(old, new)| json!([[old, new]])),
    });
    Ok(AddVersion {
        space: space(session),
        key: artifact.id.clone(),
        after,
        about: about.to_string().into_bytes(),
        content: artifact.content.clone().into_bytes(),
    })
}

impl Artifacts {
    /// The artifacts in a store.
    #[must_use]
    pub fn new(store: Store) -> Self {
        Self { store }
    }

    /// Adds a version after the one with this number in the store.
    async fn add(
        &self,
        doing: &'static str,
        session: Option<&str>,
        after: u64,
        artifact: &Artifact,
        changes: Option<(&str, &str)>,
    ) -> Result<(), Refusal> {
        match self.store.call(version_of(doing, session, after, artifact, changes)?).await {
            Ok(_) => Ok(()),
            Err(Error::VersionConflict { .. }) => Err(Refusal::Conflict),
            Err(error) => Err(failed(doing)(error)),
        }
    }

    /// Creates an artifact.
    ///
    /// # Errors
    ///
    /// [`Refusal::Exists`], and [`Refusal::Failed`].
    pub async fn create(
        &self,
        session: Option<&str>,
        id: &str,
        content_type: &str,
        title: &str,
        content: String,
    ) -> Result<(), Refusal> {
        let artifact = Artifact::new(id, content_type, title, content);
        let exists = |refusal| match refusal {
            Refusal::Conflict => Refusal::Exists { id: id.to_owned() },
            other => other,
        };
        self.add("create", session, 0, &artifact, None).await.map_err(exists)
    }

    /// Reads an artifact, its last version if none is named.
    ///
    /// # Errors
    ///
    /// [`Refusal::NotFound`], [`Refusal::NoVersion`] and [`Refusal::Failed`].
    pub async fn read(&self, session: Option<&str>, id: &str, version: Option<u64>) -> Result<Artifact, Refusal> {
        self.version(session, id, version).await.map(|(_, artifact)| artifact)
    }

    /// A version, and its number in the store.
    async fn version(&self, session: Option<&str>, id: &str, version: Option<u64>) -> Result<(u64, Artifact), Refusal> {
        let found = self.store.call(Latest { space: space(session), key: id.to_owned(), version });
        match (found.await.map_err(failed("read"))?, version) {
            (Some(found), _) => Ok((found.number, artifact(id.to_owned(), found))),
            (None, Some(version)) if version > 0 => Err(Refusal::NoVersion { version }),
            (None, _) => Err(Refusal::NotFound { id: id.to_owned() }),
        }
    }

    /// Replaces a text that the artifact has once.
    ///
    /// # Errors
    ///
    /// [`Refusal::NotFound`], [`Refusal::Mismatch`], [`Refusal::Conflict`] and [`Refusal::Failed`].
    pub async fn update(&self, session: Option<&str>, id: &str, old: &str, new: &str) -> Result<Update, Refusal> {
        let (number, current) = self.version(session, id, None).await?;
        let (text, quotation) = (current.content.clone(), old.to_owned());
        let found = blocking(move || find(&text, &quotation)).await.map_err(failed("update"))?;
        let found = found.map_err(Refusal::Mismatch)?;
        let replaced = current.content[found.span.clone()].to_owned();
        let content = format!("{}{new}{}", &current.content[..found.span.start], &current.content[found.span.end..]);
        let update_type = if found.kind == MatchType::Exact { UpdateType::Update } else { UpdateType::UpdateFuzzy };
        let next = Artifact { content, version: current.version + 1, update_type, ..current };
        self.add("update", session, number, &next, Some((&replaced, new))).await?;
        Ok(Update { version: next.version, found, replaced })
    }

    /// Replaces the whole content; the result is the new version.
    ///
    /// # Errors
    ///
    /// [`Refusal::NotFound`], [`Refusal::Conflict`] and [`Refusal::Failed`].
    pub async fn rewrite(&self, session: Option<&str>, id: &str, content: String) -> Result<u64, Refusal> {
        let (number, current) = self.version(session, id, None).await?;
        let next = Artifact { content, version: current.version + 1, update_type: UpdateType::Rewrite, ..current };
        self.add("rewrite", session, number, &next, None).await?;
        Ok(next.version)
    }

    /// Lists the artifacts of a session, sorted by their ids, with a preview of their content.
    ///
    /// # Errors
    ///
    /// [`Refusal::Failed`].
    pub async fn list(&self, session: Option<&str>) -> Result<Vec<Artifact>, Refusal> {
        let found = self.store.call(Summaries { space: space(session) }).await.map_err(failed("list"))?;
        let preview = |Summary { key, last }| {
            let mut artifact = artifact(key, last);
            if let Some((at, _)) = artifact.content.char_indices().nth(PREVIEW) {
                artifact.content.truncate(at);
                artifact.content.push_str("[...]");
            }
            artifact
        };
        Ok(found.into_iter().map(preview).collect())
    }

    /// Lists the versions of an artifact, oldest first, without their content.
    ///
    /// # Errors
    ///
    /// [`Refusal::NotFound`] and [`Refusal::Failed`].
    pub async fn history(&self, session: Option<&str>, id: &str) -> Result<Vec<Artifact>, Refusal> {
        let found = self.store.call(Versions { space: space(session), key: id.to_owned() });
        let found = found.await.map_err(failed("read"))?;
        if found.is_empty() {
            return Err(Refusal::NotFound { id: id.to_owned() });
        }
        Ok(found.into_iter().map(|version| artifact(id.to_owned(), version)).collect())
    }

    /// Compares two versions, by default the last two, as a unified diff. The result also has the numbers of the versions.
    ///
    /// # Errors
    ///
    /// [`Refusal::NotFound`], [`Refusal::NoVersion`] and [`Refusal::Failed`].
    pub async fn diff(
        &self,
        session: Option<&str>,
        id: &str,
        from: Option<u64>,
        to: Option<u64>,
    ) -> Result<(u64, u64, String), Refusal> {
        let new = self.read(session, id, to).await?;
        let from = from.unwrap_or(new.version.saturating_sub(1).max(1));
        let old = self.read(session, id, Some(from)).await?;
        let (from, to) = (old.version, new.version);
        let (one, other) = (format!("{id} (v{from})"), format!("{id} (v{to})"));
        let diff = blocking(move || {
            let diff = TextDiff::configure().timeout(DIFF_TIME).diff_lines(&old.content, &new.content);
            diff.unified_diff().header(&one, &other).to_string()
        });
        Ok((from, to, diff.await.map_err(failed("compare"))?))
    }

    /// Deletes an artifact with all its versions. A new one of the same id begins with version 1.
    ///
    /// # Errors
    ///
    /// [`Refusal::NotFound`] and [`Refusal::Failed`].
    pub async fn delete(&self, session: Option<&str>, id: &str) -> Result<(), Refusal> {
        let removed = self.store.call(RemoveDocument { space: space(session), key: id.to_owned() });
        let is_removed = removed.await.map_err(failed("delete"))?;
        if is_removed { Ok(()) } else { Err(Refusal::NotFound { id: id.to_owned() }) }
    }
}

impl KeepWhole for Artifacts {
    /// Keeps a text as an artifact of the session of its call, with a random id, for `read_artifact`. The oldest ones are removed
    /// beyond the [limits](Store::limit_results) of the store.
    fn keep(&self, whole: WholeText) -> Pin<Box<dyn Future<Output = Result<String, String>> + Send>> {
        let artifacts = self.clone();
        Box::pin(async move {
            let WholeText { text, tool, session } = whole;
            let id = format!("result-{}", hex(&random_bytes::<6>().map_err(|error| error.to_string())?));
            let content_type = if text.trim_start().starts_with(['{', '[']) { "json" } else { "text" };
            let artifact = Artifact::new(&id, content_type, &format!("The whole result of {tool}"), text);
            let document = version_of("create", session.as_deref(), 0, &artifact, None);
            let document = document.map_err(|refusal| refusal.to_string())?;
            let keep = KeepDocument { document, limits: artifacts.store.result_limits() };
            artifacts.store.call(keep).await.map_err(|error| failed("create")(error).to_string())?;
            Ok(format!("read_artifact(id=\"{id}\")"))
        })
    }
}
