//! The blocks of a response, seen in the few ways that matter to providers.

use serde_json::Value;

/// A block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Block<'a> {
    Text(&'a str),
    /// Media inside the block, in base64.
    Data {
        kind: Kind,
        media_type: &'a str,
        data: &'a str,
    },
    /// Media that lies elsewhere.
    Link {
        kind: Kind,
        url: &'a str,
    },
    /// Something else, written as JSON.
    Other(String),
}

/// What media are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Image,
    Audio,
    Video,
}

impl Kind {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Image => "image",
            Self::Audio => "audio",
            Self::Video => "video",
        }
    }
}

impl Block<'_> {
    /// What stands for a block where only text can be.
    pub(super) fn in_words(&self) -> String {
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

/// The blocks of a content.
pub(super) fn blocks(content: &Value) -> Vec<Block<'_>> {
    match content {
        Value::String(text) => vec![Block::Text(text)],
        Value::Array(blocks) => blocks.iter().map(block).collect(),
        Value::Null => Vec::new(),
        other => vec![block(other)],
    }
}

/// All blocks as one text, one to a line.
pub(super) fn in_words(blocks: &[Block<'_>]) -> String {
    blocks.iter().map(Block::in_words).collect::<Vec<_>>().join("\n")
}

fn block(block: &Value) -> Block<'_> {
    let other = || Block::Other(block.to_string());
    let kind = match block.get("type").and_then(Value::as_str) {
        Some("image") => Kind::Image,
        Some("audio") => Kind::Audio,
        Some("video") => Kind::Video,
        _ => return block.as_str().or_else(|| block.get("text")?.as_str()).map_or_else(other, Block::Text),
    };
    let source = &block["source"];
    match (source["media_type"].as_str(), source["data"].as_str(), source["url"].as_str()) {
        (Some(media_type), Some(data), _) => Block::Data { kind, media_type, data },
        (_, _, Some(url)) => Block::Link { kind, url },
        _ => other(),
    }
}
