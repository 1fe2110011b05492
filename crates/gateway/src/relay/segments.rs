//! Partial results of an upstream's task, as segments of the gateway's own task.

use std::hash::{DefaultHasher, Hash, Hasher};

use bytes::Bytes;
use outlive::{
    server::Durable,
    wire::{ContentBlock, Meta, OrderedMap, RawJson},
};
use serde::Deserialize;
use serde_json::Value;

use super::{journal::Tracked, uris};

/// Member of `_meta` in the result of `tasks/get`.
const PARTIALS: &str = "dev.outlive/partials";

/// The segments of one upstream task.
pub(super) struct Segments {
    /// Context with separate keys. The segments are numbered anew.
    cx: Durable,
    /// Hash of each block that was emitted, as the upstream sent it.
    emitted: Vec<u64>,
    /// Whether segments are read: the upstream has them, and the client may see them.
    is_active: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    segments: Vec<Numbered>,
    #[serde(default)]
    last_seq: u64,
}

#[derive(Deserialize)]
struct Numbered {
    seq: u64,
    block: Value,
}

impl Segments {
    pub(super) fn new(tracked: Tracked<'_>, is_offered: bool) -> Self {
        let is_active = is_offered && tracked.may_continue();
        let cx = tracked.cx.scope(("segments", tracked.number));
        Self { cx, emitted: Vec::new(), is_active }
    }

    /// Returns the number after which segments are requested.
    pub(super) fn after(&self) -> Option<u64> {
        self.is_active.then_some(self.emitted.len() as u64)
    }

    /// Emits the new segments. Returns whether the upstream has more. A segment that an earlier run
    /// has emitted is not emitted again.
    pub(super) async fn take(&mut self, tracked: Tracked<'_>, meta: Option<&Meta>) -> bool {
        let page = meta.and_then(|meta| meta.get(PARTIALS)).filter(|_| self.is_active);
        let Some(Ok(page)) = page.map(Page::deserialize) else { return false };
        let before = self.emitted.len();
        for Numbered { seq, block } in page.segments {
            if seq != self.emitted.len() as u64 + 1 {
                continue;
            }
            if let Err(reason) = self.emit(tracked, block).await {
                tracing::debug!(reason, "no further partial results of an upstream are passed on");
                self.is_active = false;
                return false;
            }
        }
        self.emitted.len() > before && page.last_seq > self.emitted.len() as u64
    }

    async fn emit(&mut self, tracked: Tracked<'_>, mut block: Value) -> Result<(), String> {
        let hash = hash(&block);
        uris::show_block(tracked.reached, tracked.cx.call(), &mut block);
        let block: ContentBlock =
            serde_json::from_value(block).map_err(|error| error.to_string())?;
        self.cx.emit(block).await.map_err(|error| error.to_string())?;
        self.emitted.push(hash);
        Ok(())
    }

    /// Removes the emitted segments from the start of the content of a result: the server puts its own
    /// segments there.
    pub(super) fn rest(&self, result: Bytes) -> Bytes {
        if self.emitted.is_empty() {
            return result;
        }
        without_first(&self.emitted, &result).map_or(result, Bytes::from)
    }
}

/// Returns a result without the first blocks of its content that have these hashes.
fn without_first(emitted: &[u64], result: &[u8]) -> Option<String> {
    let mut members: OrderedMap<RawJson> = serde_json::from_slice(result).ok()?;
    let (_, content) = members.0.iter_mut().find(|(name, _)| name == "content")?;
    let blocks: Vec<RawJson> = serde_json::from_str(content.get()).ok()?;
    let is_same = |(block, known): &(&RawJson, &u64)| {
        serde_json::from_str(block.get()).is_ok_and(|block: Value| hash(&block) == **known)
    };
    let same = blocks.iter().zip(emitted).take_while(is_same).count();
    *content = serde_json::value::to_raw_value(&blocks[same..]).ok()?;
    serde_json::to_string(&members).ok()
}

fn hash(block: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    block.to_string().hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn emitted_blocks_are_removed_and_other_members_stay() {
        let blocks = [json!({"type": "text", "text": "a"}), json!({"type": "text", "text": "b"})];
        let emitted: Vec<u64> = blocks.iter().map(hash).collect();
        let result = json!({"structuredContent": {"n": 1.5}, "content": blocks}).to_string();
        let rest = |emitted: &[u64]| -> Value {
            let rest = without_first(emitted, result.as_bytes()).unwrap();
            serde_json::from_str(&rest).unwrap()
        };
        let with = |blocks: &[Value]| json!({"structuredContent": {"n": 1.5}, "content": blocks});
        assert_eq!(rest(&emitted), with(&[]));
        assert_eq!(rest(&emitted[..1]), with(&blocks[1..]));
        // Blocks that differ are not those that were emitted.
        assert_eq!(rest(&[1, 2]), with(&blocks));
    }
}
