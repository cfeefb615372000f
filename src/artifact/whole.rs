//! The whole text of results that are cut, kept as artifacts.

use std::pin::Pin;

use super::artifacts::Artifacts;
use crate::bytes::{hex, random_bytes};
use crate::call::{KeepWhole, WholeText};

impl KeepWhole for Artifacts {
    /// Keeps a text as an artifact of the session of its call, with a random id, for `read_artifact`.
    fn keep(&self, whole: WholeText) -> Pin<Box<dyn Future<Output = Result<String, String>> + Send>> {
        let artifacts = self.clone();
        Box::pin(async move {
            let WholeText { text, tool, session } = whole;
            let id = format!("result-{}", hex(&random_bytes::<6>().map_err(|error| error.to_string())?));
            let content_type = if text.trim_start().starts_with(['{', '[']) { "json" } else { "text" };
            let title = format!("The whole result of {tool}");
            let kept = artifacts.create(session.as_deref(), &id, content_type, &title, text).await;
            kept.map_err(|refusal| refusal.to_string())?;
            Ok(format!("read_artifact(id=\"{id}\")"))
        })
    }
}
