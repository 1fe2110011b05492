//! Tests that a result is split into small parts and assembled byte for byte.

use std::{collections::HashMap, future::ready, sync::Arc};

use outlive_wire::{CallToolResult, ContentBlock, RawJson};
use proptest::prelude::*;
use serde_json::{json, value::to_raw_value};

use super::{BlockKind, PART_BYTES, SplitResult, assemble, split};
use crate::store::{ResultStore, StoreFuture, TaskId};

/// Parts in memory.
#[derive(Default)]
struct Parts(HashMap<(u32, u32), Arc<[u8]>>);

impl ResultStore for Parts {
    fn read_part<'a>(
        &'a self,
        _principal: &'a str,
        _task: &'a TaskId,
        block: u32,
        part: u32,
    ) -> StoreFuture<'a, Option<Arc<[u8]>>> {
        Box::pin(ready(Ok(self.0.get(&(block, part)).cloned())))
    }

    fn delete_parts<'a>(&'a self, _principal: &'a str, _task: &'a TaskId) -> StoreFuture<'a, u64> {
        Box::pin(ready(Ok(0)))
    }
}

fn raw(result: &CallToolResult) -> RawJson {
    to_raw_value(result).unwrap()
}

fn assembled(split: &SplitResult) -> Option<String> {
    let mut parts = Parts::default();
    for part in &split.parts {
        assert!(part.body.len() <= PART_BYTES);
        parts.0.insert((part.block, part.number), Arc::clone(&part.body));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let task = TaskId::new("a");
    let whole = runtime.block_on(assemble(&parts, "p", &task, &split.result)).unwrap();
    whole.map(|whole| whole.get().to_owned())
}

#[track_caller]
fn check(result: &RawJson, kinds: &[BlockKind]) -> SplitResult {
    let split = split(result).expect("the result is split");
    assert_eq!(split.result.blocks.iter().map(|block| block.kind).collect::<Vec<_>>(), kinds);
    assert_eq!(assembled(&split).as_deref(), Some(result.get()));
    let head: CallToolResult = serde_json::from_str(split.result.head.get()).unwrap();
    for block in &split.result.blocks {
        assert!(block.content.is_none_or(|index| index < head.content.len()));
    }
    split
}

#[test]
fn text_of_5_mb_is_split_into_parts_of_64_kib() {
    let text = "2026-11-18 12:00:00 building crate \"ü\"\n".repeat(130_000);
    let split = check(&raw(&CallToolResult::text(text.as_str())), &[BlockKind::Text]);
    let [block] = &split.result.blocks[..] else { panic!("one block") };
    assert_eq!((block.bytes, block.body), (text.len() as u64, 0));
    assert_eq!(split.parts.len(), text.len().div_ceil(PART_BYTES));
    assert!(split.result.head.get().len() < 100, "{}", split.result.head);
    let before = text[..PART_BYTES * 2].matches('\n').count() as u64;
    assert_eq!((block.newlines[0], block.newlines[2]), (0, before));
}

#[test]
fn structured_content_and_its_text_are_stored_once() {
    let json = to_raw_value(&json!({"rows": (0..20_000).collect::<Vec<_>>()})).unwrap();
    let bytes = json.get().len();
    let result = CallToolResult::text(json.get()).with_structured_content(json);
    let split = check(&raw(&result), &[BlockKind::Text, BlockKind::Json]);
    assert_eq!(split.parts.iter().map(|part| part.body.len()).sum::<usize>(), bytes);
    assert_eq!(split.result.blocks[1].content, None);
}

#[test]
fn images_keep_their_type_and_size() {
    let image = |byte| ContentBlock::image(vec![byte; 100_001], "image/png");
    let split = check(
        &raw(&CallToolResult::new([image(1), image(2), ContentBlock::text("two")])),
        &[BlockKind::Base64 { padding: 1 }, BlockKind::Base64 { padding: 1 }],
    );
    let block = &split.result.blocks[1];
    assert_eq!((block.size(), block.mime_type.as_deref()), (100_001, Some("image/png")));
    let blob = ContentBlock::resource_blob("file:///a", vec![7; 5_000]);
    check(&raw(&CallToolResult::new([blob])), &[BlockKind::Base64 { padding: 1 }]);
}

#[test]
fn many_lines_become_one_text() {
    let lines = (0..50_000).map(|line| match line % 3 {
        0 => ContentBlock::text(format!("line {line}")),
        1 => ContentBlock::text(format!("line {line}\n")),
        _ => ContentBlock::text(""),
    });
    let split = check(&raw(&CallToolResult::new(lines)), &[BlockKind::Texts]);
    let block = &split.result.blocks[0];
    assert!(block.lengths.is_some_and(|(body, _)| body == 1));
    assert!(split.result.head.get().len() < 100, "{}", split.result.head);
}

#[test]
fn small_result_is_not_split() {
    let result = CallToolResult::new([ContentBlock::text("a"), ContentBlock::text("b")]);
    assert!(split(&raw(&result)).is_none());
    assert!(split(&to_raw_value("x".repeat(2_000).as_str()).unwrap()).is_none());
}

#[test]
fn string_with_foreign_escapes_stays_in_head() {
    let text = r"\u00fc".repeat(1_000);
    let foreign = format!(r#"{{"content":[{{"type":"text","text":"{text}"}}]}}"#);
    let result = serde_json::value::RawValue::from_string(foreign.clone()).unwrap();
    let split = split(&result);
    assert!(split.is_none_or(|split| assembled(&split) == Some(foreign)));
}

#[test]
fn missing_part_assembles_to_nothing() {
    let mut split = split(&raw(&CallToolResult::text("x".repeat(200_000)))).unwrap();
    split.parts.pop();
    assert_eq!(assembled(&split), None);
}

fn block() -> impl Strategy<Value = ContentBlock> {
    let text = prop_oneof![
        ".{0,40}",
        proptest::collection::vec("[ -~äß€😀\n\r\t\\\\\"\u{0}]{0,60}", 0..60)
            .prop_map(|all| all.concat()),
    ];
    let data = proptest::collection::vec(any::<u8>(), 0..3_000);
    prop_oneof![
        5 => text.clone().prop_map(ContentBlock::text),
        1 => data.clone().prop_map(|data| ContentBlock::image(data, "image/png")),
        1 => text.prop_map(|text| ContentBlock::resource_text("file:///a", text)),
        1 => data.prop_map(|data| ContentBlock::resource_blob("file:///b", data)),
    ]
}

proptest! {
    #[test]
    fn any_result_is_assembled_byte_for_byte(
        content in proptest::collection::vec(block(), 0..12),
        structured in proptest::option::of(proptest::collection::vec(".{0,30}", 0..80)),
        is_error in proptest::option::of(any::<bool>()),
    ) {
        let mut result = CallToolResult::new(content);
        result.is_error = is_error;
        if let Some(rows) = structured {
            result = result.with_structured_content(to_raw_value(&json!({"rows": rows})).unwrap());
        }
        let result = raw(&result);
        if let Some(split) = split(&result) {
            prop_assert_eq!(assembled(&split), Some(result.get().to_owned()));
        }
    }
}
