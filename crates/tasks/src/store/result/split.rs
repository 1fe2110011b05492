//! Removes the bodies of large blocks from a result.
//!
//! The result stays JSON text: the splitter finds each body by its position and does not serialize
//! the rest again. A string whose escapes differ from ours stays in the head, because
//! [`assemble`](super::assemble()) could not restore it byte for byte.

use std::{borrow::Cow, collections::HashMap, ops::Range};

use outlive_wire::{RawJson, Str};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::large::{BlockKind, LargeResult, PART_BYTES, ResultPart, SplitResult, StoredBlock};

/// Bytes from which a body is stored in parts. Smaller blocks stay in the head, which is read with
/// the task.
const MIN_BODY: usize = 1_024;

/// Placeholder of consecutive blocks.
const EMPTY_BLOCK: &str = r#"{"type":"text","text":""}"#;

/// Splits a tool result. Returns `None` if the JSON is not a tool result, or if no block is large.
pub fn split(result: &RawJson) -> Option<SplitResult> {
    let json = result.get();
    let top: Top<'_> = serde_json::from_str(json).ok()?;
    let mut bodies = content_bodies(json, &top.content.unwrap_or_default());
    if let Some(structured) = top.structured_content
        && structured.get().len() >= MIN_BODY
    {
        bodies.push(Body {
            kind: BlockKind::Json,
            range: range(json, structured.get()),
            placeholder: "{}",
            content: None,
            mime_type: Some("application/json".to_owned()),
            text: Cow::Borrowed(structured.get()),
            lengths: None,
        });
    }
    if bodies.is_empty() {
        return None;
    }
    bodies.sort_by_key(|body| body.range.start);
    cut_out(json, &bodies)
}

/// A body to remove.
struct Body<'a> {
    kind: BlockKind,
    range: Range<usize>,
    placeholder: &'static str,
    content: Option<usize>,
    mime_type: Option<String>,
    text: Cow<'a, str>,
    lengths: Option<String>,
}

/// Replaces all bodies by their placeholders, and cuts them into parts.
fn cut_out(json: &str, bodies: &[Body<'_>]) -> Option<SplitResult> {
    let (mut head, mut copied) = (String::new(), 0);
    let (mut blocks, mut parts, mut next) = (Vec::with_capacity(bodies.len()), Vec::new(), 0);
    let mut stored: HashMap<&str, u32> = HashMap::new();
    let mut store = |text: &str| {
        let number: u32 = next;
        next += 1;
        let chunks = (0..).zip(text.as_bytes().chunks(PART_BYTES));
        parts.extend(chunks.map(|(part, bytes)| ResultPart::new(number, part, bytes)));
        number
    };
    for body in bodies {
        head.push_str(&json[copied..body.range.start]);
        let at = head.len();
        head.push_str(body.placeholder);
        copied = body.range.end;
        let number = *stored.entry(&body.text).or_insert_with(|| store(&body.text));
        let lengths = body.lengths.as_deref();
        blocks.push(StoredBlock {
            kind: body.kind,
            content: body.content,
            mime_type: body.mime_type.clone(),
            body: number,
            bytes: body.text.len() as u64,
            newlines: newlines(body),
            lengths: lengths.map(|lengths| (store(lengths), lengths.len() as u64)),
            at,
            placeholder: body.placeholder.len(),
        });
    }
    head.push_str(&json[copied..]);
    let head = RawValue::from_string(head).ok()?;
    Some(SplitResult { result: LargeResult { head, blocks }, parts })
}

/// Returns the number of line ends before each part.
fn newlines(body: &Body<'_>) -> Vec<u64> {
    if matches!(body.kind, BlockKind::Base64 { .. }) {
        return Vec::new();
    }
    let parts = body.text.as_bytes().chunks(PART_BYTES);
    let counts = parts.map(|part| part.iter().filter(|byte| **byte == b'\n').count() as u64);
    let mut before = 0;
    let before = counts.map(|count| {
        before += count;
        before - count
    });
    before.collect()
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Top<'a> {
    #[serde(borrow)]
    content: Option<Vec<&'a RawValue>>,
    #[serde(borrow)]
    structured_content: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Block<'a> {
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
    mime_type: Option<String>,
    #[serde(borrow)]
    resource: Option<Contents<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Contents<'a> {
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(borrow)]
    blob: Option<&'a RawValue>,
    mime_type: Option<String>,
}

/// One or several consecutive blocks of the content.
enum Piece<'a> {
    /// Text blocks without annotations.
    Texts(Range<usize>, Vec<Cow<'a, str>>),
    /// A block with a large body.
    Large(Body<'a>),
    /// Small blocks.
    Small(Range<usize>, usize),
}

/// Returns the bodies of the content.
fn content_bodies<'a>(json: &'a str, content: &[&'a RawValue]) -> Vec<Body<'a>> {
    let mut pieces: Vec<Piece<'a>> = Vec::new();
    for block in content {
        let piece = piece(json, block.get());
        match (pieces.last_mut(), piece) {
            (Some(Piece::Texts(range, texts)), Piece::Texts(next, more))
                if &json[range.end..next.start] == "," =>
            {
                range.end = next.end;
                texts.extend(more);
            }
            (_, piece) => pieces.push(piece),
        }
    }
    let pieces = join_small(pieces);
    let bodies = pieces.into_iter().enumerate().filter_map(|(index, piece)| {
        let mut body = body(json, piece)?;
        body.content = Some(index);
        Some(body)
    });
    bodies.collect()
}

/// Joins consecutive small pieces. The result has one piece per block of the head.
fn join_small(pieces: Vec<Piece<'_>>) -> Vec<Piece<'_>> {
    let mut joined: Vec<Piece<'_>> = Vec::with_capacity(pieces.len());
    for piece in pieces {
        let piece = match piece {
            Piece::Texts(range, texts) if range.len() < MIN_BODY => {
                Piece::Small(range, texts.len())
            }
            piece => piece,
        };
        match (joined.last_mut(), piece) {
            (Some(Piece::Small(range, count)), Piece::Small(next, more)) => {
                (range.end, *count) = (next.end, *count + more);
            }
            (_, piece) => joined.push(piece),
        }
    }
    // A small piece that is not stored keeps its own blocks in the head.
    let each = joined.into_iter().flat_map(|piece| match piece {
        Piece::Small(range, count) if range.len() < MIN_BODY => {
            (0..count).map(|_| Piece::Small(0..0, 1)).collect()
        }
        piece => vec![piece],
    });
    each.collect()
}

fn body<'a>(json: &'a str, piece: Piece<'a>) -> Option<Body<'a>> {
    match piece {
        Piece::Large(body) => Some(body),
        Piece::Small(range, _) if range.is_empty() => None,
        Piece::Small(range, _) => Some(Body {
            kind: BlockKind::Items,
            placeholder: EMPTY_BLOCK,
            content: None,
            mime_type: Some("application/json".to_owned()),
            text: Cow::Owned(format!("[{}]", &json[range.clone()])),
            lengths: None,
            range,
        }),
        Piece::Texts(range, mut texts) if texts.len() == 1 => {
            // The placeholder is the empty string inside the block.
            let string = range.start + PLAIN_TEXT.len() - 1..range.end - 1;
            Some(string_body(string, BlockKind::Text, None, texts.pop()?))
        }
        Piece::Texts(range, texts) => Some(joined_texts(range, &texts)),
    }
}

/// Joins text blocks into one text, and lists their lengths.
fn joined_texts<'a>(range: Range<usize>, texts: &[Cow<'_, str>]) -> Body<'a> {
    let bytes: usize = texts.iter().map(|text| text.len() + 1).sum();
    let (mut joined, mut lengths) = (String::with_capacity(bytes), String::new());
    for (index, text) in texts.iter().enumerate() {
        if index > 0 {
            lengths.push(',');
        }
        lengths.push_str(&text.len().to_string());
        joined.push_str(text);
        if !text.ends_with('\n') && index + 1 < texts.len() {
            joined.push('\n');
        }
    }
    Body {
        kind: BlockKind::Texts,
        range,
        placeholder: EMPTY_BLOCK,
        content: None,
        mime_type: None,
        text: Cow::Owned(joined),
        lengths: Some(lengths),
    }
}

/// Start of a text block without annotations, up to the first quotation mark of its text.
const PLAIN_TEXT: &str = r#"{"type":"text","text":""#;

fn piece<'a>(json: &'a str, block: &'a str) -> Piece<'a> {
    let range = range(json, block);
    if block.starts_with(PLAIN_TEXT)
        && let Some(text) = decode(&block[PLAIN_TEXT.len() - 1..block.len() - 1])
    {
        return Piece::Texts(range, vec![text]);
    }
    match large_member(json, block) {
        Some(body) => Piece::Large(body),
        None => Piece::Small(range, 1),
    }
}

/// Returns the large member of a block, if it has one.
fn large_member<'a>(json: &'a str, block: &'a str) -> Option<Body<'a>> {
    if block.len() < MIN_BODY {
        return None;
    }
    let Block { text, data, mime_type, resource } = serde_json::from_str(block).ok()?;
    let (text, data, mime_type) = match resource {
        Some(Contents { text, blob, mime_type }) => (text, blob, mime_type),
        None => (text, data, mime_type),
    };
    let (kind, raw) = match (text, data) {
        (Some(text), _) => (BlockKind::Text, text.get()),
        (None, Some(data)) => (BlockKind::Base64 { padding: padding(data.get())? }, data.get()),
        (None, None) => return None,
    };
    let text = decode(raw).filter(|text| text.len() >= MIN_BODY)?;
    Some(string_body(range(json, raw), kind, mime_type, text))
}

fn string_body(
    range: Range<usize>,
    kind: BlockKind,
    mime_type: Option<String>,
    text: Cow<'_, str>,
) -> Body<'_> {
    Body { kind, range, placeholder: r#""""#, content: None, mime_type, text, lengths: None }
}

/// Decodes a JSON string. Returns `None` if our serializer would write the string differently.
fn decode(raw: &str) -> Option<Cow<'_, str>> {
    let Str(text) = serde_json::from_str(raw).ok()?;
    match text {
        // Without escapes there is only one way to write it.
        Cow::Borrowed(_) => Some(text),
        Cow::Owned(decoded) => {
            let written = serde_json::to_string(&decoded).ok()?;
            (written == raw).then_some(Cow::Owned(decoded))
        }
    }
}

/// Returns the number of padding characters of a JSON string with Base64 data. Returns `None` if
/// the string is not Base64 with padding.
fn padding(raw: &str) -> Option<u8> {
    let data = raw.strip_prefix('"')?.strip_suffix('"')?;
    let digits = data.trim_end_matches('=');
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/';
    let padding = data.len() - digits.len();
    let is_whole = data.len().is_multiple_of(4) && padding <= 2;
    (is_whole && digits.bytes().all(is_digit)).then(|| u8::try_from(padding).ok())?
}

/// Returns the position of a part of the JSON text.
fn range(json: &str, part: &str) -> Range<usize> {
    let start = part.as_ptr().addr() - json.as_ptr().addr();
    start..start + part.len()
}
