//! Results, for people.

use outlive::{
    client::TaskSnapshot,
    wire::{CallToolResult, ContentBlock, ResourceContents},
};
use serde_json::Value;

use super::screen::Screen;

/// Shows what a result has beyond the blocks that were shown as they came.
pub(crate) fn result(screen: &Screen, result: &CallToolResult, came: usize) {
    let structured: Option<Value> = result
        .structured_content
        .as_ref()
        .and_then(|content| serde_json::from_str(content.get()).ok());
    let rest = result.content.get(came..).unwrap_or_default();
    // A tool that failed says why at the end; what stands before it is what it has printed.
    let (rest, error) = match (result.is_error, rest) {
        (Some(true), [rest @ .., error]) => (rest, Some(error)),
        (_, rest) => (rest, None),
    };
    for block in rest {
        // Servers repeat structured content as text, for clients that know no other.
        if structured.is_some() && as_json(block) == structured {
            continue;
        }
        screen.data(&text(block));
    }
    if let Some(error) = error {
        screen.talk(&format!("error: {}", text(error)));
    }
    if let Some(structured) = structured {
        screen.data(&format!("{structured:#}"));
    }
}

/// What a task is doing, in words, beside how far it is. A server that has no other words for that says
/// how far it is in the words themselves.
pub(crate) fn doing(task: &TaskSnapshot) -> Option<&str> {
    let (Some(far), Some(message)) = (&task.progress, &task.message) else {
        let far = task.progress.as_ref().and_then(|far| far.message.as_deref());
        return far.or(task.message.as_deref());
    };
    let count = match far.total {
        Some(total) => format!("{} of {total}", far.done),
        None => far.done.to_string(),
    };
    let words = far.message.as_ref().map_or(count.clone(), |said| format!("{said} ({count})"));
    match *message == words {
        true => far.message.as_deref(),
        false => Some(message),
    }
}

/// A block: its text, or a line that says what it is.
pub(crate) fn text(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => {
            format!("[image: {}, {}]", image.mime_type, size(&image.data))
        }
        ContentBlock::Audio(audio) => {
            format!("[audio: {}, {}]", audio.mime_type, size(&audio.data))
        }
        ContentBlock::ResourceLink(link) => format!("[resource: {} at {}]", link.name, link.uri),
        ContentBlock::Resource(resource) => match &resource.resource {
            ResourceContents::Text(text) => {
                format!("[resource: {}, {} bytes of text]", text.uri, text.text.len())
            }
            ResourceContents::Blob(blob) => {
                format!("[resource: {}, {}]", blob.uri, size(&blob.blob))
            }
            _ => "[resource]".to_owned(),
        },
        other => serde_json::to_string(other).unwrap_or_default(),
    }
}

fn as_json(block: &ContentBlock) -> Option<Value> {
    match block {
        ContentBlock::Text(text) => serde_json::from_str(&text.text).ok(),
        _ => None,
    }
}

/// How much Base64 stands for.
fn size(base64: &str) -> String {
    let bytes = base64.trim_end_matches('=').len() * 3 / 4;
    format!("{bytes} bytes")
}
