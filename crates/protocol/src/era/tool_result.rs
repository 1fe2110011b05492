//! Encodes tool results, which can be megabytes large.
//!
//! The output equals the serde serialization of [`CallToolResult`]. Blocks that can be large are
//! encoded by hand, with the fast string writer; serde encodes the others.

use outlive_wire::{AudioContent, CallToolResult, ContentBlock, ImageContent, TextContent};
use serde::Serialize;

use super::{error::put, string};

/// Writes the members of a result, without the enclosing braces.
pub(super) fn members(result: &CallToolResult, out: &mut Vec<u8>) {
    let CallToolResult { content, structured_content, is_error, meta } = result;
    out.extend_from_slice(br#""content":["#);
    for (at, block) in content.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write_block(block, out);
    }
    out.push(b']');
    member("structuredContent", structured_content, out);
    member("isError", is_error, out);
    member("_meta", meta, out);
}

fn write_block(block: &ContentBlock, out: &mut Vec<u8>) {
    let (annotations, meta) = match block {
        ContentBlock::Text(TextContent { text, annotations, meta }) => {
            out.extend_from_slice(br#"{"type":"text","text":"#);
            string::write(text, out);
            (annotations, meta)
        }
        ContentBlock::Image(ImageContent { data, mime_type, annotations, meta }) => {
            write_data(br#"{"type":"image","data":"#, data, mime_type, out);
            (annotations, meta)
        }
        ContentBlock::Audio(AudioContent { data, mime_type, annotations, meta }) => {
            write_data(br#"{"type":"audio","data":"#, data, mime_type, out);
            (annotations, meta)
        }
        other => return put(other, out),
    };
    member("annotations", annotations, out);
    member("_meta", meta, out);
    out.push(b'}');
}

fn write_data(opening: &[u8], data: &str, mime_type: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(opening);
    string::write(data, out);
    out.extend_from_slice(br#","mimeType":"#);
    string::write(mime_type, out);
}

/// Appends a member to a non-empty object, if it has a value.
fn member<T: Serialize>(name: &str, value: &Option<T>, out: &mut Vec<u8>) {
    let Some(value) = value else { return };
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
    put(value, out);
}

#[cfg(test)]
mod tests {
    use outlive_wire::{Annotations, CallToolResult, ContentBlock, Meta, Resource};
    use serde_json::value::to_raw_value;

    use super::members;

    /// Checks that the output equals the serde serialization.
    #[track_caller]
    fn check(result: &CallToolResult) {
        let mut out = b"{".to_vec();
        members(result, &mut out);
        out.push(b'}');
        assert_eq!(str::from_utf8(&out).unwrap(), serde_json::to_string(result).unwrap());
    }

    #[test]
    fn tool_result_is_encoded_as_by_serde() {
        let meta = || Meta([("a/b".to_owned(), 1.into())].into_iter().collect());
        let blocks = || {
            [
                ContentBlock::text("two\nlines, \"quoted\""),
                ContentBlock::image_base64("AAAA", "image/png"),
                ContentBlock::audio_base64("AAAA", "audio/wav"),
                ContentBlock::resource_link(Resource::new("file:///a", "a")),
                ContentBlock::resource_text("file:///a", "b"),
                ContentBlock::Unknown(to_raw_value(&["c"]).unwrap()),
            ]
        };
        check(&CallToolResult::default());
        check(&CallToolResult::error("no"));
        check(&CallToolResult::new(blocks()));
        let annotated = blocks().map(|block| {
            block.with_annotations(Annotations::new().with_priority(0.5)).with_meta(meta())
        });
        check(&CallToolResult::new(annotated).with_meta(meta()));
        let json = to_raw_value(&serde_json::json!({"a": [1]})).unwrap();
        check(&CallToolResult::text("{}").with_structured_content(json).with_is_error(false));
    }
}
