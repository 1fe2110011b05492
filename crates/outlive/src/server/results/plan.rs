//! [`CutPlan`]: decides which bytes of a result a client gets.
//!
//! A pure function of sizes. The first three quarters of the limit go to the start of the result,
//! and an eighth to its end, because errors stand at the end. The rest is for the notice and the
//! links.

use outlive_tasks::store::{BlockKind, LargeResult, StoredBlock};
use outlive_wire::{CallToolResult, ContentBlock};

/// Bytes that an image or audio counts: hosts show it as media, and not as text.
const MEDIA_BYTES: u64 = 2 << 10;

/// Size above which an image or audio becomes a link.
const MAX_MEDIA: u64 = 1 << 20;

/// Bytes that a link counts.
const LINK_BYTES: u64 = 256;

/// Fate of one content block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Whole,
    /// Only the start and the end of the text, with at most this many bytes.
    Ends {
        head: u64,
        tail: u64,
    },
    /// A link replaces the block.
    Link,
    /// The block is left out and cannot be read. Only small blocks between large ones.
    Drop,
}

/// Fate of each part of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CutPlan {
    /// One for each content block of the head.
    pub(crate) content: Vec<Fate>,
    /// Whether the structured content is replaced.
    pub(crate) cuts_structured: bool,
}

impl CutPlan {
    /// Returns the plan that keeps `blocks` content blocks whole.
    pub(crate) fn whole(blocks: usize) -> Self {
        Self { content: vec![Fate::Whole; blocks], cuts_structured: false }
    }

    /// Decides how a result fits into `limit` bytes. Returns `None` if it fits whole.
    ///
    /// Text content and structured content count separately: hosts show one or the other.
    pub(crate) fn new(large: &LargeResult, head: &CallToolResult, limit: usize) -> Option<Self> {
        let limit = limit as u64;
        let measures: Vec<Measure> = measures(large, head);
        let structured = large.blocks.iter().find(|block| block.content.is_none());
        let cuts_structured = structured.is_some_and(|block| block.bytes > limit);
        let total: u64 = measures.iter().map(|measure| measure.bytes).sum();
        let has_link = measures.iter().any(|measure| measure.is_link);
        if total <= limit && !has_link && !cuts_structured {
            return None;
        }
        let content = match total <= limit {
            true => measures.iter().map(|measure| measure.whole()).collect(),
            false => ends(&measures, limit),
        };
        Some(Self { content, cuts_structured })
    }
}

/// Size of one content block of the head.
#[derive(Clone, Copy, Debug)]
struct Measure {
    bytes: u64,
    /// Whether the block is stored, so that a link can replace it.
    is_stored: bool,
    /// Whether the start and the end of the block make sense alone.
    is_text: bool,
    /// Whether the block always becomes a link.
    is_link: bool,
}

impl Measure {
    fn whole(self) -> Fate {
        if self.is_link { Fate::Link } else { Fate::Whole }
    }

    fn left_out(self) -> Fate {
        if self.is_stored { Fate::Link } else { Fate::Drop }
    }
}

fn measures(large: &LargeResult, head: &CallToolResult) -> Vec<Measure> {
    let mut blocks = large.blocks.iter().filter(|block| block.content.is_some()).peekable();
    let each = head.content.iter().enumerate().map(|(index, content)| {
        let stored = blocks.next_if(|block| block.content == Some(index));
        stored.map_or_else(|| inline(content), measure)
    });
    each.collect()
}

fn inline(content: &ContentBlock) -> Measure {
    let bytes = match content {
        ContentBlock::Text(text) => text.text.len(),
        other => serde_json::to_string(other).map_or(0, |json| json.len()),
    };
    Measure { bytes: bytes as u64, is_stored: false, is_text: false, is_link: false }
}

fn measure(block: &StoredBlock) -> Measure {
    let (bytes, is_text, is_link) = match block.kind {
        BlockKind::Text | BlockKind::Texts => (block.bytes, true, false),
        BlockKind::Items | BlockKind::Json => (block.bytes, false, false),
        BlockKind::Base64 { .. } if block.size() > MAX_MEDIA => (LINK_BYTES, false, true),
        BlockKind::Base64 { .. } => (MEDIA_BYTES, false, false),
    };
    Measure { bytes, is_stored: true, is_text, is_link }
}

/// Keeps the blocks at the start and at the end that fit.
fn ends(measures: &[Measure], limit: u64) -> Vec<Fate> {
    let mut fates: Vec<Fate> = measures.iter().map(|measure| measure.left_out()).collect();
    let mut budget = limit / 4 * 3;
    let mut front = measures.len();
    for (index, measure) in measures.iter().enumerate() {
        if measure.bytes > budget {
            front = index;
            if measure.is_text {
                fates[index] = Fate::Ends { head: budget, tail: 0 };
            }
            break;
        }
        fates[index] = measure.whole();
        budget -= measure.bytes;
    }
    let mut budget = limit / 8;
    for index in (front..measures.len()).rev() {
        let measure = measures[index];
        if index > front && measure.bytes <= budget {
            fates[index] = measure.whole();
            budget -= measure.bytes;
            continue;
        }
        if measure.is_text {
            let head = match fates[index] {
                Fate::Ends { head, .. } => head,
                _ => 0,
            };
            fates[index] = Fate::Ends { head, tail: budget.min(measure.bytes - head) };
        }
        break;
    }
    fates
}

#[cfg(test)]
mod tests {
    use outlive_wire::{CallToolResult, ContentBlock};
    use serde_json::value::to_raw_value;

    use super::{CutPlan, Fate};
    use crate::server::results::body::ResultReader;

    fn plan(content: Vec<ContentBlock>, limit: usize) -> Option<Vec<Fate>> {
        let raw = to_raw_value(&CallToolResult::new(content)).unwrap();
        let reader = ResultReader::from_whole(&raw);
        let head = serde_json::from_str(reader.result().head.get()).unwrap();
        CutPlan::new(reader.result(), &head, limit).map(|plan| plan.content)
    }

    fn text(bytes: usize) -> ContentBlock {
        // Annotations keep consecutive texts apart.
        ContentBlock::text("x".repeat(bytes)).with_annotations(outlive_wire::Annotations::default())
    }

    fn image(bytes: usize) -> ContentBlock {
        ContentBlock::image(vec![1; bytes], "image/png")
    }

    #[test]
    fn result_within_limit_is_not_cut() {
        assert_eq!(plan(vec![text(8_000)], 8_000), None);
        assert_eq!(plan(vec![image(1 << 20), text(5_000)], 8_000), None);
        assert_eq!(plan(vec![], 8_000), None);
    }

    #[test]
    fn text_over_limit_keeps_three_quarters_and_an_eighth() {
        let ends = |head, tail| Fate::Ends { head, tail };
        assert_eq!(plan(vec![text(9_000)], 8_000), Some(vec![ends(6_000, 1_000)]));
        assert_eq!(plan(vec![text(8_001)], 8_000), Some(vec![ends(6_000, 1_000)]));
        let several = plan(vec![text(2_000), text(9_000), text(9_000), text(9_000)], 8_000);
        let expected = [Fate::Whole, ends(4_000, 0), Fate::Link, ends(0, 1_000)];
        assert_eq!(several.as_deref(), Some(&expected[..]));
        let last = plan(vec![text(9_000), text(9_000), ContentBlock::text("failed")], 8_000);
        assert_eq!(last, Some(vec![ends(6_000, 0), ends(0, 994), Fate::Whole]));
    }

    #[test]
    fn images_count_2_kib_and_become_links_above_1_mib() {
        assert_eq!(plan(vec![image((1 << 20) + 1)], 8_000), Some(vec![Fate::Link]));
        let many = plan((0..10).map(|_| image(100_000)).collect(), 16_000).unwrap();
        assert_eq!(many[..5], [Fate::Whole; 5]);
        assert_eq!(many[5..], [Fate::Link; 5]);
    }
}
