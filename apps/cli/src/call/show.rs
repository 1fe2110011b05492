//! Formats results as text.

use outlive::{
    client::tasks::TaskSnapshot,
    wire::{CallToolResult, ContentBlock, ResourceContents},
};
use serde_json::Value;

use super::screen::{Screen, shown};
use crate::print;

/// Prints a result without its first `came` content blocks, which were printed as they arrived.
pub(crate) fn result(screen: &Screen, result: &CallToolResult, came: usize) {
    let structured: Option<Value> = result
        .structured_content
        .as_ref()
        .and_then(|content| serde_json::from_str(content.get()).ok());
    let rest = result.content.get(came..).unwrap_or_default();
    // The last block of a tool error is its message. The blocks before it are the tool's output.
    let (rest, error) = match (result.is_error, rest) {
        (Some(true), [rest @ .., error]) => (rest, Some(error)),
        (_, rest) => (rest, None),
    };
    // Servers repeat structured content as text for old clients. Print it once.
    let is_same = |block: &ContentBlock| structured.is_some() && as_json(block) == structured;
    for block in rest.iter().filter(|block| !is_same(block)) {
        screen.data(&text(block));
    }
    if let Some(error) = error.filter(|error| !is_same(error)) {
        screen.talk(&print::hanging("error: ", "       ", &text(error)));
    }
    let shown = result.content.get(..came).unwrap_or(&result.content);
    if let Some(structured) = structured
        && !shown.iter().any(|block| as_json(block).as_ref() == Some(&structured))
        && !repeats(&structured, &result.content)
    {
        screen.data(&format!("{structured:#}"));
    }
}

/// Returns whether structured content only wraps the text, as `{"result": 3}` wraps `3`.
fn repeats(structured: &Value, content: &[ContentBlock]) -> bool {
    let mut members = structured.as_object().into_iter().flat_map(|members| members.values());
    let (Some(wrapped), None) = (members.next(), members.next()) else { return false };
    let text = |block: &ContentBlock| match block {
        ContentBlock::Text(text) => Some(text.text.clone()),
        _ => None,
    };
    let Some(texts) = content.iter().map(text).collect::<Option<Vec<String>>>() else {
        return false;
    };
    let says = |text: &String, value: &Value| match value {
        Value::String(said) => said == text,
        value => serde_json::from_str::<Value>(text).is_ok_and(|said| said == *value),
    };
    match (&texts[..], wrapped) {
        ([], _) => false,
        ([only], wrapped) if says(only, wrapped) => true,
        (texts, Value::String(said)) => texts.join("\n") == *said,
        (texts, Value::Array(values)) => {
            texts.len() == values.len()
                && texts.iter().zip(values).all(|(text, value)| says(text, value))
        }
        _ => false,
    }
}

/// Returns the status message of a task, without its progress.
///
/// A server without a progress field writes the progress into the status message. That repetition
/// is removed.
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

/// Formats a content block: its text, or a line that describes it.
pub(crate) fn text(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => {
            format!("[image: {}, {}]", shown(&image.mime_type), size(&image.data))
        }
        ContentBlock::Audio(audio) => {
            format!("[audio: {}, {}]", shown(&audio.mime_type), size(&audio.data))
        }
        ContentBlock::ResourceLink(link) => {
            format!("[resource: {} at {}]", shown(&link.name), shown(&link.uri))
        }
        ContentBlock::Resource(resource) => match &resource.resource {
            ResourceContents::Text(text) => {
                format!("[resource: {}, {} bytes of text]", shown(&text.uri), text.text.len())
            }
            ResourceContents::Blob(blob) => {
                format!("[resource: {}, {}]", shown(&blob.uri), size(&blob.blob))
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

/// Formats the size of Base64 data.
fn size(base64: &str) -> String {
    let bytes = base64.trim_end_matches('=').len() * 3 / 4;
    format!("{bytes} bytes")
}

#[cfg(test)]
mod tests {
    use outlive::wire::ContentBlock;
    use serde_json::{Value, json};

    use super::repeats;

    #[track_caller]
    fn assert_repeats(structured: &Value, texts: &[&str], expected: bool) {
        let content: Vec<ContentBlock> = texts.iter().map(|it| ContentBlock::text(*it)).collect();
        assert_eq!(repeats(structured, &content), expected, "{structured} {texts:?}");
    }

    #[test]
    fn structured_result_wrapping_its_text_is_repetition() {
        assert_repeats(&json!({"result": 3}), &["3"], true);
        assert_repeats(&json!({"result": "3"}), &["3"], true);
        assert_repeats(&json!({"content": "a\nb"}), &["a\nb"], true);
        assert_repeats(&json!({"result": ["a", "b"]}), &["a", "b"], true);
        assert_repeats(&json!({"result": [{"x": 1}, 2]}), &["{\"x\":1}", "2"], true);
        assert_repeats(&json!({"result": {"x": 1}}), &["{\"x\": 1}"], true);
    }

    #[test]
    fn structured_result_with_more_data_is_not_repetition() {
        assert_repeats(&json!({"result": 3}), &["4"], false);
        assert_repeats(&json!({"result": 3, "unit": "m"}), &["3"], false);
        assert_repeats(&json!({"result": ["a", "b"]}), &["a"], false);
        assert_repeats(&json!({"result": null}), &[], false);
        assert_repeats(&json!({}), &["a"], false);
    }
}
