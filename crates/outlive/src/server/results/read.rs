//! Reads ranges of stored results: bytes, lines, values at JSON pointers, and lines with a text.

use outlive_tasks::store::{BlockKind, LargeResult, PART_BYTES, StoredBlock, TaskId};
use outlive_wire::{Meta, ResourceContents};
use serde_json::json;

use crate::server::results::{
    body::ResultReader,
    error::ReadError,
    find::{Finder, MAX_NEEDLE},
    notice::continued,
    pointer::PointerScan,
    range::{DEFAULT_BYTES, MAX_BYTES, Range, range_error},
};

/// Key of the read range in `_meta`.
const RANGE: &str = "dev.outlive/range";

/// Reads a range of a block as the contents of a resource.
pub(crate) async fn contents(
    reader: &ResultReader<'_>,
    uri: &str,
    number: usize,
    range: &Range,
) -> Result<ResourceContents, ReadError> {
    let block = reader.block(number)?;
    let mime_type = block.mime_type.as_deref().unwrap_or("text/plain");
    let (mut contents, meta) = match (&block.kind, range) {
        (BlockKind::Base64 { .. }, _) => blob(reader, uri, block, range).await?,
        (_, Range::All) => {
            let text = reader.text(block.body, block.bytes).await?;
            (ResourceContents::text(uri, text), byte_range(0, block.bytes, block.bytes))
        }
        (_, Range::Bytes { from, bytes }) => {
            let (text, from) = text_at(reader, block, *from, *bytes).await?;
            let to = from + text.len() as u64;
            (ResourceContents::text(uri, text), byte_range(from, to, block.bytes))
        }
        (_, Range::Lines { line, lines }) => {
            let (text, from) = lines_at(reader, block, *line, *lines).await?;
            let to = from + text.len() as u64;
            let mut meta = byte_range(from, to, block.bytes);
            meta["line"] = json!(line);
            (ResourceContents::text(uri, text), meta)
        }
        (_, Range::At { pointer, from, count }) => {
            let mut scan = PointerScan::new(pointer, *from, *count);
            for part in 0..block.parts() {
                if scan.feed(&reader.part(block.body, part).await?)? {
                    break;
                }
            }
            let found = scan.finish(pointer)?;
            let length = found.json.len() as u64;
            let meta = match found.elements {
                Some((from, to, of)) => byte_range(from, to, of),
                None => byte_range(0, length, length),
            };
            (ResourceContents::text(uri, found.json), meta)
        }
    };
    let meta = Some(Meta::default().with(RANGE, meta));
    match &mut contents {
        ResourceContents::Text(text) => {
            let is_json = matches!(range, Range::At { .. });
            let mime_type = if is_json { "application/json" } else { mime_type };
            (text.mime_type, text.meta) = (Some(mime_type.to_owned()), meta);
        }
        ResourceContents::Blob(blob) => {
            (blob.mime_type, blob.meta) = (block.mime_type.clone(), meta);
        }
        _ => {}
    }
    Ok(contents)
}

fn byte_range(from: u64, to: u64, of: u64) -> serde_json::Value {
    json!({"from": from, "to": to, "of": of})
}

/// Reads a range of binary data. The range moves to whole groups of three bytes, which are four
/// characters of Base64.
async fn blob(
    reader: &ResultReader<'_>,
    uri: &str,
    block: &StoredBlock,
    range: &Range,
) -> Result<(ResourceContents, serde_json::Value), ReadError> {
    let size = block.size();
    let (from, bytes) = match range {
        Range::All => (0, size),
        Range::Bytes { from, bytes } => (*from, *bytes),
        Range::Lines { .. } | Range::At { .. } => {
            return Err(range_error("the block is binary; read it with `from` and `bytes`"));
        }
    };
    check_start(from, size)?;
    let (first, last) = (from / 3, from.saturating_add(bytes).min(size).div_ceil(3));
    let data = reader.bytes(block.body, first * 4, last * 4).await?;
    let data = String::from_utf8(data).map_err(|_| ReadError::Unknown)?;
    let meta = byte_range(first * 3, (last * 3).min(size), size);
    Ok((ResourceContents::blob_base64(uri, data), meta))
}

fn check_start(from: u64, of: u64) -> Result<(), ReadError> {
    match from < of || from == 0 {
        true => Ok(()),
        false => Err(range_error(format!("`from` is {from}, but the block has {of} bytes"))),
    }
}

/// Reads about `bytes` bytes of a text from `from` on. Both ends move back to whole characters.
/// Returns the text and its position. The text has at least one character.
pub(crate) async fn text_at(
    reader: &ResultReader<'_>,
    block: &StoredBlock,
    from: u64,
    bytes: u64,
) -> Result<(String, u64), ReadError> {
    check_start(from, block.bytes)?;
    let to = from.saturating_add(bytes).min(block.bytes);
    let mut data = reader.bytes(block.body, from, to).await?;
    let mut start = from;
    while data.first().is_some_and(|byte| is_inner(*byte)) && start > 0 {
        start -= 1;
        let before = reader.bytes(block.body, start, start + 1).await?;
        data.splice(0..0, before);
    }
    let whole = whole_chars(&data);
    if whole == 0 && to < block.bytes {
        // The range ends inside its only character.
        data = reader.bytes(block.body, start, (start + 4).min(block.bytes)).await?;
        data.truncate(first_char(&data));
    } else {
        data.truncate(whole);
    }
    let text = String::from_utf8(data).map_err(|_| ReadError::Unknown)?;
    Ok((text, start))
}

/// Returns whether a byte continues a character.
fn is_inner(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

/// Returns the length of a text without an incomplete last character.
fn whole_chars(data: &[u8]) -> usize {
    match std::str::from_utf8(data) {
        Ok(text) => text.len(),
        Err(error) => error.valid_up_to(),
    }
}

fn first_char(data: &[u8]) -> usize {
    let inner = data.iter().skip(1).take_while(|byte| is_inner(**byte)).count();
    data.len().min(1 + inner)
}

/// Returns the start of a text with at most `bytes` bytes, up to the end of a line.
pub(crate) async fn head_text(
    reader: &ResultReader<'_>,
    block: &StoredBlock,
    bytes: u64,
) -> Result<String, ReadError> {
    let bytes = bytes.min(block.bytes);
    let mut data = reader.bytes(block.body, 0, bytes).await?;
    data.truncate(whole_chars(&data));
    if bytes < block.bytes
        && let Some(end) = data.iter().rposition(|byte| *byte == b'\n')
        // A very long line is cut, because leaving it out would lose most of the text.
        && end >= data.len() / 2
    {
        data.truncate(end + 1);
    }
    String::from_utf8(data).map_err(|_| ReadError::Unknown)
}

/// Returns the end of a text with at most `bytes` bytes, from the start of a line.
pub(crate) async fn tail_text(
    reader: &ResultReader<'_>,
    block: &StoredBlock,
    bytes: u64,
) -> Result<String, ReadError> {
    let from = block.bytes - bytes.min(block.bytes);
    let mut data = reader.bytes(block.body, from, block.bytes).await?;
    let start = match data.iter().position(|byte| *byte == b'\n') {
        Some(end) if from > 0 && end < data.len() / 2 => end + 1,
        _ => data.iter().take_while(|byte| is_inner(**byte)).count(),
    };
    data.drain(..start);
    String::from_utf8(data).map_err(|_| ReadError::Unknown)
}

/// Reads lines, numbered from 1. Returns the text and its position.
async fn lines_at(
    reader: &ResultReader<'_>,
    block: &StoredBlock,
    line: u64,
    lines: Option<u64>,
) -> Result<(String, u64), ReadError> {
    let start = match line {
        0 | 1 => Some(0),
        _ => line_end(reader, block, line - 1).await?,
    };
    let start = start.filter(|start| *start < block.bytes || *start == 0);
    let start =
        start.ok_or_else(|| range_error(format!("the block has fewer than {line} lines")))?;
    let end = match lines {
        Some(lines) => line_end(reader, block, (line - 1).saturating_add(lines)).await?,
        None => None,
    };
    let most = if lines.is_some() { MAX_BYTES } else { DEFAULT_BYTES };
    let end = end.unwrap_or(block.bytes).min(start.saturating_add(most));
    let (mut text, from) = text_at(reader, block, start, (end - start).max(1)).await?;
    if lines.is_none()
        && end < block.bytes
        && let Some(last) = text.rfind('\n')
    {
        text.truncate(last + 1);
    }
    Ok((text, from))
}

/// Returns the position after the `number`th line end. Reads one part.
async fn line_end(
    reader: &ResultReader<'_>,
    block: &StoredBlock,
    number: u64,
) -> Result<Option<u64>, ReadError> {
    let parts = block.newlines.partition_point(|before| *before < number);
    let Some(part) = parts.checked_sub(1) else { return Ok(Some(0)) };
    let nth = usize::try_from(number - block.newlines[part] - 1).unwrap_or(usize::MAX);
    let data = reader.part(block.body, u32::try_from(part).unwrap_or(u32::MAX)).await?;
    let mut ends = data.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    Ok(ends.nth(nth).map(|(at, _)| (part * PART_BYTES + at + 1) as u64))
}

/// Returns the blocks that `task_result` reads in order: the texts, or the structured content of a
/// result without text.
fn reading_order(large: &LargeResult) -> Vec<usize> {
    let blocks = || large.blocks.iter().enumerate();
    let is_text = |block: &StoredBlock| !matches!(block.kind, BlockKind::Base64 { .. });
    let texts = blocks().filter(|(_, block)| block.content.is_some() && is_text(block));
    let texts: Vec<usize> = texts.map(|(number, _)| number).collect();
    match texts.is_empty() {
        true => blocks().filter(|(_, block)| is_text(block)).map(|(number, _)| number).collect(),
        false => texts,
    }
}

/// Returns the position of a block in the text that `task_result` reads.
pub(crate) fn text_start(large: &LargeResult, number: usize) -> u64 {
    let before = reading_order(large).into_iter().take_while(|other| *other != number);
    before.filter_map(|other| large.blocks.get(other)).map(|block| block.bytes).sum()
}

/// Returns the text of a result from a position on, with at most `limit` bytes, and a line that
/// tells how to continue.
pub(crate) async fn continue_text(
    reader: &ResultReader<'_>,
    task: &TaskId,
    from: u64,
    limit: usize,
) -> Result<String, ReadError> {
    let large = reader.result();
    let order = reading_order(large);
    let of: u64 =
        order.iter().filter_map(|number| large.blocks.get(*number)).map(|block| block.bytes).sum();
    if from >= of {
        return Err(range_error(format!("`from` is {from}, but the result has {of} bytes")));
    }
    let mut before = 0;
    for number in order {
        let block = reader.block(number)?;
        if from >= before + block.bytes {
            before += block.bytes;
            continue;
        }
        // The rest is for the last line.
        let bytes = (limit as u64 / 8 * 7).clamp(1, MAX_BYTES);
        let (mut text, start) = text_at(reader, block, from - before, bytes).await?;
        let end = start + text.len() as u64;
        if end < block.bytes
            && let Some(last) = text.rfind('\n')
            && last >= text.len() / 2
        {
            text.truncate(last + 1);
        }
        let to = before + start + text.len() as u64;
        if to < of {
            if !text.ends_with('\n') {
                text.push('\n');
            }
            text.push_str(&continued(task, to, of));
        }
        return Ok(text);
    }
    Err(ReadError::Unknown)
}

/// Returns the lines of a result that contain a text, with their numbers.
pub(crate) async fn find_text(
    reader: &ResultReader<'_>,
    needle: &str,
) -> Result<String, ReadError> {
    if needle.is_empty() || needle.len() > MAX_NEEDLE || needle.contains('\n') {
        return Err(range_error(format!(
            "`find` must be a text of 1 to {MAX_NEEDLE} bytes in one line"
        )));
    }
    let order = reading_order(reader.result());
    let (mut text, mut hits, mut shown) = (String::new(), 0, 0);
    for number in &order {
        let block = reader.block(*number)?;
        let mut finder = Finder::new(needle);
        for part in 0..block.parts() {
            finder.feed(&reader.part(block.body, part).await?);
        }
        let found = finder.finish();
        if order.len() > 1 && found.hits > 0 {
            text.push_str(&format!("block {number}:\n"));
        }
        text.push_str(&found.output);
        (hits, shown) = (hits + found.hits, shown + found.shown);
    }
    Ok(match hits {
        0 => format!("no line contains `{needle}`"),
        hits if hits > shown => {
            format!(
                "{hits} lines contain `{needle}`; the first {shown}, with their numbers:\n{text}"
            )
        }
        hits => format!("{hits} lines contain `{needle}`, with their numbers:\n{text}"),
    })
}
