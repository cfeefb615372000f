//! The result of a call, before it is written in the format of a provider.

use serde_json::Value;

/// The result of a call.
#[derive(Debug, Clone, Copy)]
pub struct ToolResult<'a> {
    /// The content blocks, or plain text.
    pub content: &'a Value,
    /// The value that the text represents.
    pub value: Option<&'a Value>,
    /// True if the call failed.
    pub is_error: bool,
    /// The id of the call.
    pub id: Option<&'a str>,
    /// True for a call with free text, whose result is an item of another type in OpenAI's responses.
    pub is_custom: bool,
    /// The tool's name.
    pub name: Option<&'a str>,
}

impl ToolResult<'_> {
    /// The content as blocks.
    pub(super) fn blocks(&self) -> Vec<ContentBlock<'_>> {
        match self.content {
            Value::String(text) => vec![ContentBlock::Text(text)],
            Value::Array(blocks) => blocks.iter().map(ContentBlock::of).collect(),
            Value::Null => Vec::new(),
            other => vec![ContentBlock::of(other)],
        }
    }
}

/// A content block, as far as providers distinguish them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ContentBlock<'a> {
    Text(&'a str),
    /// Media in base64.
    Data {
        kind: MediaKind,
        media_type: &'a str,
        data: &'a str,
    },
    /// Media at a URL.
    Link {
        kind: MediaKind,
        url: &'a str,
    },
    /// Anything else, as JSON.
    Other(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MediaKind {
    Image,
    Audio,
    Video,
}

impl MediaKind {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Image => "image",
            Self::Audio => "audio",
            Self::Video => "video",
        }
    }
}

impl<'a> ContentBlock<'a> {
    fn of(block: &'a Value) -> Self {
        let other = || Self::Other(block.to_string());
        let kind = match block.get("type").and_then(Value::as_str) {
            Some("image") => MediaKind::Image,
            Some("audio") => MediaKind::Audio,
            Some("video") => MediaKind::Video,
            _ => return block.as_str().or_else(|| block.get("text")?.as_str()).map_or_else(other, Self::Text),
        };
        let source = &block["source"];
        match (source["media_type"].as_str(), source["data"].as_str(), source["url"].as_str()) {
            (Some(media_type), Some(data), _) => Self::Data { kind, media_type, data },
            (_, _, Some(url)) => Self::Link { kind, url },
            _ => other(),
        }
    }

    /// The block as text, for formats that have only text.
    pub(super) fn as_text(&self) -> String {
        match self {
            Self::Text(text) => (*text).to_owned(),
            Self::Data { kind, media_type, data } => {
                format!("[{}: {media_type}, {} bytes]", kind.as_str(), data.len() / 4 * 3)
            }
            Self::Link { kind, url } => format!("[{}: {url}]", kind.as_str()),
            Self::Other(text) => text.clone(),
        }
    }
}

/// All blocks as one text, one to a line.
pub(super) fn as_text(blocks: &[ContentBlock<'_>]) -> String {
    blocks.iter().map(ContentBlock::as_text).collect::<Vec<_>>().join("\n")
}
