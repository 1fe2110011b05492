//! Restores a result from its head and its parts.

use outlive_wire::RawJson;
use serde_json::value::RawValue;

use super::large::{BlockKind, LargeResult, StoredBlock, parts_of};
use crate::store::{ResultStore, StoreError, TaskId};

/// Returns the result byte for byte as its handler returned it. Returns `None` if a part is
/// missing, because the task or its parts were deleted.
///
/// # Errors
///
/// Returns an error if the store cannot be read, or if its parts do not match the head.
pub async fn assemble<S: ResultStore + ?Sized>(
    store: &S,
    principal: &str,
    task: &TaskId,
    large: &LargeResult,
) -> Result<Option<RawJson>, StoreError> {
    let read = |block, bytes| read_body(store, principal, task, block, bytes);
    let head = large.head.get();
    let (mut json, mut copied) = (String::with_capacity(capacity(large)), 0);
    for block in &large.blocks {
        let Some(body) = read(block.body, block.bytes).await? else { return Ok(None) };
        let lengths = match block.lengths {
            None => String::new(),
            Some((number, bytes)) => match read(number, bytes).await? {
                Some(lengths) => lengths,
                None => return Ok(None),
            },
        };
        json.push_str(head.get(copied..block.at).ok_or_else(mismatch)?);
        write_body(&mut json, block, &body, &lengths).ok_or_else(mismatch)?;
        copied = block.at + block.placeholder;
    }
    json.push_str(head.get(copied..).ok_or_else(mismatch)?);
    RawValue::from_string(json).map(Some).map_err(|_| mismatch())
}

/// Returns an estimate of the size of the whole result. Escapes need a little more.
fn capacity(large: &LargeResult) -> usize {
    usize::try_from(large.bytes()).unwrap_or_default() / 16 * 17
}

async fn read_body<S: ResultStore + ?Sized>(
    store: &S,
    principal: &str,
    task: &TaskId,
    block: u32,
    bytes: u64,
) -> Result<Option<String>, StoreError> {
    let mut body = Vec::with_capacity(usize::try_from(bytes).unwrap_or_default());
    for part in 0..parts_of(bytes) {
        match store.read_part(principal, task, block, part).await? {
            Some(part) => body.extend_from_slice(&part),
            None => return Ok(None),
        }
    }
    String::from_utf8(body).map(Some).map_err(|_| mismatch())
}

/// Writes a body as it was in the JSON of the result.
fn write_body(json: &mut String, block: &StoredBlock, body: &str, lengths: &str) -> Option<()> {
    match block.kind {
        BlockKind::Json => json.push_str(body),
        BlockKind::Items => json.push_str(body.strip_prefix('[')?.strip_suffix(']')?),
        BlockKind::Text | BlockKind::Base64 { .. } => json.push_str(&quoted(body)?),
        BlockKind::Texts => {
            for (index, text) in split_texts(body, lengths)?.into_iter().enumerate() {
                let comma = if index == 0 { "" } else { "," };
                let text = quoted(text)?;
                json.extend([comma, r#"{"type":"text","text":"#, &text, "}"]);
            }
        }
    }
    Some(())
}

/// Splits the body of [`BlockKind::Texts`] into its texts. Returns `None` if the lengths do not
/// match the body.
pub fn split_texts<'a>(body: &'a str, lengths: &str) -> Option<Vec<&'a str>> {
    let mut rest = body;
    let texts = lengths.split(',').map(|length| {
        let (text, after) = rest.split_at_checked(length.parse().ok()?)?;
        rest = match text.ends_with('\n') {
            true => after,
            // No line end follows the last text.
            false => after.strip_prefix('\n').unwrap_or(after),
        };
        Some(text)
    });
    texts.collect()
}

fn quoted(text: &str) -> Option<String> {
    serde_json::to_string(text).ok()
}

fn mismatch() -> StoreError {
    StoreError::Incompatible(
        "the parts of a result do not match its head; restore the store from a backup".to_owned(),
    )
}
