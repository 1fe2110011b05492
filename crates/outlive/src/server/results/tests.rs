//! Tests of cuts and ranges, on results of 5 MB of five kinds.

use std::{
    future::Future,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use outlive_tasks::store::{PART_BYTES, ResultPart, ResultStore, StoreFuture, TaskId, TaskOutcome};
use outlive_wire::{CallToolResult, ContentBlock, ResourceContents};
use proptest::prelude::*;
use serde_json::{Value, json, value::to_raw_value};

use super::{
    body::ResultReader,
    cut::{CutOptions, cut},
    deliver::cut_in_memory,
    error::ReadError,
    notice::Rest,
    range::ResultUri,
    read::{contents, continue_text, find_text},
};

const TASK: &str = "a1b2c3d4a1b2c3d4a1b2c3d4a1b2c3d4";
const LIMIT: usize = 50_000;
const MB_5: usize = 5 << 20;

/// A store of parts that counts the loaded bytes.
#[derive(Default)]
struct CountedParts {
    parts: Mutex<Vec<ResultPart>>,
    reads: AtomicUsize,
}

impl ResultStore for CountedParts {
    fn read_part<'a>(
        &'a self,
        _principal: &'a str,
        _task: &'a TaskId,
        block: u32,
        part: u32,
    ) -> StoreFuture<'a, Option<Arc<[u8]>>> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        let parts = self.parts.lock().unwrap();
        let found = parts.iter().find(|it| (it.block, it.number) == (block, part));
        let found = found.map(|part| Arc::clone(&part.body));
        Box::pin(async move { Ok(found) })
    }

    fn delete_parts<'a>(&'a self, _principal: &'a str, _task: &'a TaskId) -> StoreFuture<'a, u64> {
        Box::pin(async { Ok(0) })
    }
}

/// A stored result.
struct Stored {
    store: CountedParts,
    outcome: TaskOutcome,
    task: TaskId,
}

impl Stored {
    fn new(result: &CallToolResult) -> Self {
        let mut outcome = TaskOutcome::Result(to_raw_value(result).unwrap());
        let store = CountedParts::default();
        *store.parts.lock().unwrap() = outcome.take_parts();
        Self { store, outcome, task: TaskId::new(TASK) }
    }

    fn reader(&self) -> ResultReader<'_> {
        ResultReader::from_outcome(&self.store, "p", &self.task, &self.outcome).unwrap()
    }

    fn cut(&self, limit: usize) -> Option<CallToolResult> {
        let rest = Rest::Stored(&self.task);
        let options = CutOptions { limit, tool: "build", rest };
        now(cut(&self.reader(), options)).unwrap()
    }

    fn read(&self, query: &str) -> Result<(ResourceContents, usize), ReadError> {
        let uri = format!("outlive://results/{TASK}/{query}");
        let ResultUri { block, range, .. } = ResultUri::parse(&uri)?;
        let before = self.store.reads.load(Ordering::Relaxed);
        let read = now(contents(&self.reader(), &uri, block, &range))?;
        Ok((read, self.store.reads.load(Ordering::Relaxed) - before))
    }

    #[track_caller]
    fn text(&self, query: &str) -> (String, Value, usize) {
        let (contents, reads) = self.read(query).unwrap();
        let ResourceContents::Text(text) = contents else { panic!("{contents:?}") };
        let meta = text.meta.unwrap();
        (text.text, meta["dev.outlive/range"].clone(), reads)
    }

    #[track_caller]
    fn check_error(&self, query: &str, says: &str) {
        match self.read(query) {
            Err(ReadError::Range(reason)) => assert!(reason.contains(says), "{query}: {reason}"),
            other => panic!("{query}: {other:?}"),
        }
    }
}

/// Runs a future that never waits for another thread.
fn now<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn log() -> String {
    let lines = (1..).map(|line| format!("{line:06} compiling crate ü of the workspace\n"));
    let mut log = String::new();
    lines.take_while(|_| true).take(MB_5 / 45).for_each(|line| log.push_str(&line));
    log.push_str("error: the last line");
    log
}

fn texts(result: &CallToolResult) -> usize {
    result.texts().map(str::len).sum()
}

fn links(result: &CallToolResult) -> Vec<(String, Option<u64>)> {
    let links = result.content.iter().filter_map(|block| match block {
        ContentBlock::ResourceLink(link) => Some((link.uri.clone(), link.size)),
        _ => None,
    });
    links.collect()
}

#[test]
fn log_of_5_mb_is_cut_to_start_notice_end_and_link() {
    let log = log();
    let stored = Stored::new(&CallToolResult::text(log.as_str()));
    let result = stored.cut(LIMIT).unwrap();
    let text = result.texts().next().unwrap();
    assert!(texts(&result) <= LIMIT && text.len() > LIMIT / 4 * 3 - 100);
    let (start, rest) = text.split_once("\n[").unwrap();
    assert!(log.starts_with(start) && start.ends_with("workspace"), "the start ends with a line");
    let (notice, end) = rest.split_once("]\n").unwrap();
    assert!(log.ends_with(end) && end.ends_with("error: the last line"));
    assert!(end.starts_with(|first: char| first.is_ascii_digit()), "the end starts with a line");
    let from = start.len() + 1;
    let expected = format!(
        "are left out here: continue with task_result {{\"task\":\"{TASK}\",\"from\":{from}}}, or find lines with {{\"task\":\"{TASK}\",\"find\":\"ERROR\"}}"
    );
    assert!(notice.contains(&expected), "{notice}");
    let size = log.len() as u64;
    assert_eq!(links(&result), [(format!("outlive://results/{TASK}/0"), Some(size))]);
    assert!(stored.store.reads.load(Ordering::Relaxed) <= 4, "only the ends are loaded");
}

#[test]
fn range_of_one_part_loads_at_most_two_parts() {
    let log = log();
    let stored = Stored::new(&CallToolResult::text(log.as_str()));
    for from in [0, 1, 37_500, 65_536, 65_537, 1 << 20, log.len() - 70_000, log.len() - 5] {
        let (text, range, reads) = stored.text(&format!("0?from={from}&bytes=65536"));
        let start = log.floor_char_boundary(from);
        let end = log.floor_char_boundary((from + 65_536).min(log.len()));
        assert_eq!(text, log[start..end], "{from}");
        assert_eq!(range, json!({"from": start, "to": end, "of": log.len()}));
        assert!(reads <= 3, "{from}: {reads} reads");
    }
    assert_eq!(stored.text("0?from=65536&bytes=65536").2, 1, "an aligned range is one part");
}

#[test]
fn lines_of_5_mb_are_found_by_index() {
    let log = log();
    let stored = Stored::new(&CallToolResult::text(log.as_str()));
    let lines: Vec<&str> = log.split_inclusive('\n').collect();
    for (line, count) in [(1, 1), (2, 3), (5_000, 100), (lines.len() - 1, 2), (lines.len(), 9)] {
        let (text, range, reads) = stored.text(&format!("0?line={line}&lines={count}"));
        let end = (line - 1 + count).min(lines.len());
        assert_eq!(text, lines[line - 1..end].concat(), "{line}");
        assert_eq!((&range["line"], &range["of"]), (&json!(line), &json!(log.len())));
        assert!(reads <= 4, "{line}: {reads} reads");
    }
    let (text, _, _) = stored.text("0?line=100");
    assert!(text.len() <= 64 << 10 && text.ends_with('\n') && text.starts_with(lines[99]));
    stored.check_error("0?line=9999999", "fewer than 9999999 lines");
}

#[test]
fn range_beyond_end_gets_one_clear_error() {
    let stored = Stored::new(&CallToolResult::text(log()));
    stored.check_error("0?from=99999999", "`from` is 99999999, but the block has");
    stored.check_error("0?at=/a", "at `at`");
    assert_eq!(stored.read("1").map(drop), Err(ReadError::Unknown), "there is no such block");
}

#[test]
fn json_text_and_structured_content_of_5_mb_are_read_by_pointer() {
    let rows: Vec<Value> = (0..60_000)
        .map(|id| json!({"id": id, "name": format!("row {id} of the table, with some text ä")}))
        .collect();
    let structured = to_raw_value(&json!({"rows": rows, "count": 60_000})).unwrap();
    assert!(structured.get().len() > 3 << 20, "{}", structured.get().len());
    let result = CallToolResult::text(structured.get()).with_structured_content(structured);
    let stored = Stored::new(&result);
    let cut = stored.cut(LIMIT).unwrap();
    assert!(texts(&cut) <= LIMIT);
    let replaced: Value = serde_json::from_str(cut.structured_content.unwrap().get()).unwrap();
    assert_eq!(replaced["task"], json!({"id": TASK, "tool": "build", "status": "completed"}));
    assert_eq!(replaced["cut"]["uri"], format!("outlive://results/{TASK}/1"));
    for block in [0, 1] {
        let (text, range, _) = stored.text(&format!("{block}?at=/rows&from=59990&bytes=3"));
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), json!(rows[59_990..59_993]));
        assert_eq!(range, json!({"from": 59_990, "to": 59_993, "of": 60_000}));
        assert_eq!(stored.text(&format!("{block}?at=/rows/7/id")).0, "7");
        assert_eq!(stored.text(&format!("{block}?at=/count")).0, "60000");
    }
    stored.check_error("1?at=/rows&from=60000", "has 60000 elements");
}

#[test]
fn large_text_without_line_ends_is_cut() {
    let stored = Stored::new(&CallToolResult::text("QUJD".repeat(MB_5 / 4)));
    let result = stored.cut(LIMIT).unwrap();
    assert!((LIMIT / 4 * 3..=LIMIT).contains(&texts(&result)));
    assert_eq!(stored.text("0?from=3000000&bytes=9").0, "QUJDQUJDQ");
    let found = now(find_text(&stored.reader(), "QUJD")).unwrap();
    assert!(found.starts_with("1 lines contain `QUJD`") && found.len() < 1_000, "{}", found.len());
}

#[test]
fn images_of_5_mb_stay_or_become_links() {
    let image = |byte, size| ContentBlock::image(vec![byte; size], "image/png");
    let stored = Stored::new(&CallToolResult::new([
        image(1, 500_000),
        image(2, 2 << 20),
        ContentBlock::text("the end"),
        image(3, 2 << 20),
    ]));
    let result = stored.cut(LIMIT).unwrap();
    assert!(matches!(&result.content[0], ContentBlock::Image(image) if image.data.len() > 500_000));
    let uri = |block| format!("outlive://results/{TASK}/{block}");
    assert_eq!(links(&result), [(uri(1), Some(2 << 20)), (uri(2), Some(2 << 20))]);
    assert_eq!(result.texts().collect::<Vec<_>>(), ["the end"]);
    let (contents, reads) = stored.read("1?from=1000001&bytes=65536").unwrap();
    let ResourceContents::Blob(blob) = contents else { panic!("{contents:?}") };
    assert_eq!(blob.mime_type.as_deref(), Some("image/png"));
    let expected = json!({"from": 999_999, "to": 1_065_537, "of": 2 << 20});
    assert_eq!(blob.meta.unwrap()["dev.outlive/range"], expected);
    assert_eq!(blob.blob, "AgIC".repeat((1_065_537 - 999_999) / 3));
    assert!(reads <= 3, "{reads}");
    let (whole, _) = stored.read("2").unwrap();
    let ResourceContents::Blob(blob) = whole else { panic!("{whole:?}") };
    assert_eq!(blob.blob, "AwMD".repeat((2 << 20) / 3) + "AwM=");
    stored.check_error("1?line=1", "binary");
    let many = Stored::new(&CallToolResult::new((0..50).map(|byte| image(byte, 100_000))));
    let result = many.cut(LIMIT).unwrap();
    assert_eq!(links(&result).len(), 16, "the number of links is bounded");
    let last = result.texts().last().unwrap();
    assert!(last.contains("more blocks") && last.contains(&uri(49)), "{last}");
}

#[test]
fn emitted_lines_of_5_mb_are_read_as_one_text() {
    let lines: Vec<String> =
        (0..100_000).map(|line| format!("{line} is a line of a log, ü")).collect();
    let content = lines.iter().map(ContentBlock::text);
    let stored = Stored::new(&CallToolResult::new(content));
    let result = stored.cut(LIMIT).unwrap();
    assert!(texts(&result) <= LIMIT && result.content.len() == 2);
    assert_eq!(stored.text("0?line=77778&lines=1").0, format!("{}\n", lines[77_777]));
    let found = now(find_text(&stored.reader(), "77777 is")).unwrap();
    assert!(found.contains(&format!("77778: {}", lines[77_777])), "{found}");
    let mut from = 0;
    let mut all = String::new();
    loop {
        let text = now(continue_text(&stored.reader(), &stored.task, from, LIMIT)).unwrap();
        assert!(text.len() <= LIMIT);
        let Some((part, notice)) = text.rsplit_once("\n[") else {
            all.push_str(&text);
            break;
        };
        all.push_str(part);
        all.push('\n');
        let next = notice.split_once("\"from\":").unwrap().1;
        from = next.trim_end_matches("}]").parse().unwrap();
        assert_eq!(from, all.len() as u64);
    }
    assert_eq!(all, lines.join("\n"));
    let beyond = now(continue_text(&stored.reader(), &stored.task, all.len() as u64, LIMIT));
    assert!(matches!(beyond, Err(ReadError::Range(_))), "{beyond:?}");
}

#[test]
fn result_below_64_kib_is_cut_and_read_without_parts() {
    let log = &log()[..60_000];
    let stored = Stored::new(&CallToolResult::text(log));
    assert!(matches!(stored.outcome, TaskOutcome::Result(_)));
    let result = stored.cut(40_000).unwrap();
    assert_eq!(links(&result)[0].1, Some(log.len() as u64));
    assert_eq!(stored.text("0?from=100&bytes=50").0, log[100..150]);
    assert!(stored.cut(60_001).is_none(), "it fits");
}

#[test]
fn result_that_is_not_stored_names_the_limit_and_has_no_link() {
    let rest = Rest::NotStored("max_store_bytes_per_caller");
    let options = CutOptions { limit: LIMIT, tool: "build", rest };
    let result = cut_in_memory(&CallToolResult::text(log()), options).unwrap();
    let text = result.texts().next().unwrap();
    assert!(
        text.contains("`max_store_bytes_per_caller` is used up") && !text.contains("task_result")
    );
    assert!(links(&result).is_empty() && text.ends_with("error: the last line"));
    assert!(cut_in_memory(&CallToolResult::text("short"), options).is_none());
}

#[test]
fn deleted_parts_are_an_unknown_result() {
    let stored = Stored::new(&CallToolResult::text(log()));
    stored.store.parts.lock().unwrap().clear();
    assert_eq!(stored.read("0?from=1").map(drop), Err(ReadError::Unknown));
}

fn any_text() -> impl Strategy<Value = String> {
    let line = prop_oneof!["[a-zäß€😀 ]{0,40}\n", "[a-z]{0,300}"];
    proptest::collection::vec(line, 0..200).prop_map(|lines| lines.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn cut_text_stays_within_its_limit_and_misses_nothing(
        all in proptest::collection::vec(any_text(), 1..4),
        limit in 4_096_usize..20_000,
    ) {
        let stored = Stored::new(&CallToolResult::new(all.iter().map(ContentBlock::text)));
        match stored.cut(limit) {
            None => prop_assert!(all.iter().map(|text| text.len() + 1).sum::<usize>() <= limit + 1),
            Some(result) => {
                prop_assert!(texts(&result) <= limit, "{} > {}", texts(&result), limit);
                let text: String = result.texts().collect();
                let whole = now(stored.reader().text(0, stored.reader().block(0).unwrap().bytes)).unwrap();
                let (start, rest) = text.split_once('[').unwrap();
                prop_assert!(whole.starts_with(start.trim_end_matches('\n')));
                let (_, end) = rest.split_once(']').unwrap();
                prop_assert!(whole.ends_with(end.trim_start_matches('\n')));
            }
        }
    }

    #[test]
    fn ranges_of_any_text_are_whole_characters(
        text in "[a-zä€😀\n]{300,400}",
        from in 0_u64..4_000,
        bytes in 1_u64..500,
    ) {
        let text = text.repeat(PART_BYTES / 150);
        let stored = Stored::new(&CallToolResult::text(text.as_str()));
        let from = PART_BYTES as u64 - 2_000 + from;
        let (read, range, _) = stored.text(&format!("0?from={from}&bytes={bytes}"));
        let start = usize::try_from(range["from"].as_u64().unwrap()).unwrap();
        prop_assert!(!read.is_empty() && text[start..].starts_with(&read));
        prop_assert!(start <= from as usize && from as usize - start < 4);
        prop_assert!(read.len() as u64 <= bytes.max(4) + 3);
    }
}
