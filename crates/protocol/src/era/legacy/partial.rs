//! Partial responses: several responses with one request ID, each with numbered segments and a flag
//! for the last one. Clients and servers opt in.
//! Proposal: <https://github.com/modelcontextprotocol/modelcontextprotocol/pull/1905>

use std::io::Write;

use outlive_wire::{Meta, RawJson};

use super::{shape, task};
use crate::{Call, FinalSegments, PartialResponse, Segments, VersionRules, era::error::put};

/// Encodes a partial response that is not the last one.
pub(super) fn partial(call: &Call, partial: &PartialResponse, out: &mut Vec<u8>) {
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    out.extend_from_slice(call.id().as_bytes());
    out.extend_from_slice(br#","result":{"#);
    if let Some(view) = &partial.task {
        out.extend_from_slice(br#""task":"#);
        put(&task::Task::of(view), out);
        out.push(b',');
    }
    if let Some(blocks) = &partial.blocks {
        numbered(blocks, out);
        out.extend_from_slice(br#","isError":false,"isComplete":false,"#);
    }
    let mut meta = partial.task.as_ref().and_then(|view| task::meta(view)).unwrap_or_default();
    meta.insert(Meta::RELATED_TASK.to_owned(), task::related(&partial.id));
    out.extend_from_slice(br#""_meta":"#);
    put(&meta, out);
    out.extend_from_slice(b"}}");
}

/// Encodes the last response of a call, or the segments so far for `tasks/result`.
pub(super) fn rest(rules: &VersionRules, rest: FinalSegments, out: &mut Vec<u8>) {
    let is_complete = rest.end.is_some();
    let end = rest.end.map(|end| shape::tool_result(rules, *end)).unwrap_or_default();
    out.push(b'{');
    match &rest.blocks {
        Some(blocks) => numbered(blocks, out),
        None => {
            out.extend_from_slice(br#""content":"#);
            put(&end.content, out);
        }
    }
    if let Some(structured) = &end.structured_content {
        out.extend_from_slice(br#","structuredContent":"#);
        out.extend_from_slice(structured.get().as_bytes());
    }
    let _ = write!(
        out,
        r#","isError":{},"isComplete":{is_complete},"_meta":"#,
        end.is_error == Some(true)
    );
    let mut meta = end.meta.unwrap_or_default();
    meta.insert(Meta::RELATED_TASK.to_owned(), task::related(&rest.id));
    put(&meta, out);
    out.push(b'}');
}

fn numbered(blocks: &Segments, out: &mut Vec<u8>) {
    out.extend_from_slice(br#""partial-content":["#);
    for (index, block) in blocks.blocks.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        one(blocks.first + index as u64, block, out);
    }
    out.push(b']');
}

/// Writes a segment. Its sequence number becomes the first member of the content block.
fn one(number: u64, block: &RawJson, out: &mut Vec<u8>) {
    let members = block.get().trim_ascii().strip_prefix('{').unwrap_or("}").trim_ascii_start();
    // Writing to memory does not fail.
    let _ = write!(out, r#"{{"seqNr":{number}"#);
    if members != "}" {
        out.push(b',');
    }
    out.extend_from_slice(members.as_bytes());
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::numbered;
    use crate::Segments;

    #[test]
    fn sequence_number_is_first_member_of_block() {
        let raw = |json: &str| RawValue::from_string(json.to_owned()).unwrap();
        let blocks = vec![raw(r#"{"type":"text","text":"}"}"#), raw("{ }"), raw("{ \"a\" : 1 }")];
        let mut out = Vec::new();
        numbered(&Segments { first: 9, blocks }, &mut out);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            r#""partial-content":[{"seqNr":9,"type":"text","text":"}"},{"seqNr":10},{"seqNr":11,"a" : 1 }]"#
        );
    }
}
