//! Checks of commits by workers.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use outlive_wire::RawJson;
use serde_json::json;
use tokio::task::JoinSet;

use super::bench::{
    ContractBench, LEASE, OWNER, RETENTION, ask, done, entry, promises, raw, recorded,
};
use crate::{
    SegmentRecord,
    store::{ChangeSource, Changes, PageLimit, TaskId, Transition},
};

promises![
    committed_changes_survive_a_reclaim,
    recorded_entry_never_changes,
    invalidated_entry_can_be_replaced_in_same_commit,
    segments_keep_order_and_number,
    segments_are_readable_after_any_number,
    segment_page_respects_its_limits,
    segment_page_reports_open_input_request,
    segments_are_invisible_to_other_principals,
    visible_change_advances_updated_at,
    recorded_step_advances_updated_at,
    status_message_stays_until_replaced,
    progress_is_visible_to_principal_and_next_worker,
    commit_is_atomic,
    listeners_are_notified_of_visible_changes,
    repeated_commit_is_stored_once,
    concurrent_commits_change_only_their_own_task,
];

async fn committed_changes_survive_a_reclaim(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    let odd = json!({"text": "ü\u{0}\n\"", "big": 18_446_744_073_709_551_615_u64, "f": 0.1});
    bench.write(&lease, entry("ü/#\\", odd.clone())).await;
    bench.advance(LEASE * 2);
    let journal = bench.claim_one("w").await.journal;
    assert_eq!(recorded(&journal, "ü/#\\"), Some(odd.to_string()));
}

async fn recorded_entry_never_changes(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    bench.write(&lease, entry("k", json!("first"))).await;
    bench.write(&lease, entry("k", json!("second"))).await;
    bench.advance(LEASE * 2);
    assert_eq!(recorded(&bench.claim_one("w").await.journal, "k").as_deref(), Some("\"first\""));
}

async fn invalidated_entry_can_be_replaced_in_same_commit(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    bench.write(&lease, entry("k", json!("first"))).await;
    let forgotten = vec!["k".to_owned()];
    bench.write(&lease, Changes { invalidated: forgotten, ..entry("k", json!("second")) }).await;
    bench.advance(LEASE * 2);
    assert_eq!(recorded(&bench.claim_one("w").await.journal, "k").as_deref(), Some("\"second\""));
}

async fn segments_keep_order_and_number(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    let segment = |scope: &str, ordinal: u32| SegmentRecord {
        scope: scope.to_owned(),
        ordinal,
        block: raw(&json!(format!("{scope}{ordinal}"))),
    };
    for batch in [vec![segment("", 0), segment("x", 0)], vec![segment("", 1)]] {
        bench.write(&lease, Changes { segments: batch, ..Changes::default() }).await;
    }
    bench.advance(LEASE * 2);
    let segments = bench.claim_one("w").await.journal.segments;
    let blocks: Vec<&str> = segments.iter().map(|segment| segment.block.get()).collect();
    assert_eq!(blocks, ["\"0\"", "\"x0\"", "\"1\""]);
    assert_eq!((segments[1].scope.as_str(), segments[2].ordinal), ("x", 1));
}

fn emitted(scope: &str, ordinal: u32) -> SegmentRecord {
    let block = raw(&json!(format!("{scope}{ordinal}")));
    SegmentRecord { scope: scope.to_owned(), ordinal, block }
}

/// Returns the texts of the segments without quotes, the last number, and whether the task has
/// ended.
async fn read(bench: &ContractBench, after: u64, segments: usize) -> (Vec<String>, u64, bool) {
    let (task, limit) = (TaskId::new("a"), PageLimit { segments, bytes: 1 << 20 });
    let read = bench.store.read_segments(OWNER, &task, after, limit).await.expect("read succeeds");
    let read = read.expect("task exists");
    let texts = read.blocks.iter().map(|block| block.get().trim_matches('"').to_owned());
    (texts.collect(), read.last, read.ended)
}

async fn segments_are_readable_after_any_number(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    assert_eq!(read(&bench, 0, 10).await, (vec![], 0, false));
    for batch in [vec![emitted("", 0), emitted("x", 0)], vec![emitted("", 1)]] {
        bench.write(&lease, Changes { segments: batch, ..Changes::default() }).await;
    }
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    assert_eq!(read(&bench, 0, 10).await, (texts(&["0", "x0", "1"]), 3, false));
    assert_eq!(read(&bench, 1, 10).await, (texts(&["x0", "1"]), 3, false));
    assert_eq!(read(&bench, 3, 10).await, (vec![], 3, false));
    assert_eq!(
        read(&bench, u64::MAX, 10).await,
        (vec![], 3, false),
        "a number above the last returns nothing"
    );
    // Repeats the segments as after a reclaim, with one new segment.
    bench.advance(LEASE * 2);
    let lease = bench.claim_one("w").await.lease;
    let again = vec![emitted("x", 0), emitted("x", 1)];
    bench.write(&lease, Changes { segments: again, ..Changes::default() }).await;
    assert_eq!(read(&bench, 2, 10).await, (texts(&["1", "x1"]), 4, false));
    let last = Changes { segments: vec![emitted("", 2)], ..Changes::default() };
    let then = Transition::End { outcome: done(), retention: RETENTION };
    bench.store.commit(&lease, &last, &then).await.expect("commit succeeds");
    assert_eq!(read(&bench, 4, 10).await, (texts(&["2"]), 5, true));
    assert_eq!(
        read(&bench, 0, 10).await.0,
        ["0", "x0", "1", "x1", "2"],
        "segments keep their order after the end"
    );
}

async fn segment_page_respects_its_limits(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    let block = raw(&json!("ü".repeat(30)));
    let segments =
        (0..7).map(|ordinal| SegmentRecord { block: block.clone(), ..emitted("", ordinal) });
    bench.write(&lease, Changes { segments: segments.collect(), ..Changes::default() }).await;
    assert_eq!(read(&bench, 0, 3).await.0.len(), 3);
    assert_eq!(read(&bench, 6, 3).await, (vec!["ü".repeat(30)], 7, false));
    // Each segment has 62 bytes. A page includes the segment that exceeds the limit, and is never
    // empty.
    for (bytes, count) in [(0, 1), (1, 1), (62, 1), (63, 2), (124, 2), (125, 3)] {
        let (task, limit) = (TaskId::new("a"), PageLimit { segments: 10, bytes });
        let read = bench.store.read_segments(OWNER, &task, 1, limit).await.expect("read succeeds");
        assert_eq!(read.expect("task exists").blocks.len(), count, "{bytes} bytes");
    }
}

async fn segment_page_reports_open_input_request(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    let (task, limit) = (TaskId::new("a"), PageLimit { segments: 1, bytes: 1 });
    let asks = async || {
        let read = bench.store.read_segments(OWNER, &task, 0, limit).await.expect("read succeeds");
        read.expect("task exists").input_required
    };
    assert!(!asks().await);
    bench.write(&lease, ask(&[("k", "k")])).await;
    assert!(asks().await);
    bench.answer("a", &[("k", json!({"roots": []}))]).await;
    assert!(!asks().await);
}

async fn segments_are_invisible_to_other_principals(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    let segments = vec![emitted("", 0)];
    bench.write(&lease, Changes { segments, ..Changes::default() }).await;
    let limit = PageLimit { segments: 10, bytes: 1_000 };
    for (owner, task) in [("name:eve", "a"), (OWNER, "b")] {
        let read = bench.store.read_segments(owner, &TaskId::new(task), 0, limit).await;
        assert!(read.expect("read succeeds").is_none());
    }
}

async fn visible_change_advances_updated_at(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    let mut last = bench.view("a").await.updated_at;
    for count in 0..5 {
        let message = Some(format!("{count} of 5"));
        bench
            .write(
                &lease,
                Changes { status_message: message, ..entry(&format!("k{count}"), json!(count)) },
            )
            .await;
        let updated = bench.view("a").await.updated_at;
        assert!(updated > last, "{updated} follows {last}");
        last = updated;
    }
}

async fn recorded_step_advances_updated_at(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    let mut last = bench.view("a").await.updated_at;
    for count in 0..3 {
        bench.advance(Duration::from_secs(1));
        bench.write(&lease, entry(&format!("k{count}"), json!(count))).await;
        let updated = bench.view("a").await.updated_at;
        assert!(updated > last, "{updated} follows {last}");
        last = updated;
    }
}

async fn progress_is_visible_to_principal_and_next_worker(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    for done in [1, 2] {
        let progress = Some(raw(&json!({"done": done})));
        bench.write(&lease, Changes { progress, ..Changes::default() }).await;
    }
    bench.write(&lease, entry("k", json!(1))).await;
    let is_last = |seen: Option<RawJson>| seen.is_some_and(|seen| seen.get() == r#"{"done":2}"#);
    assert!(is_last(bench.view("a").await.progress));
    bench.advance(LEASE * 2);
    assert!(is_last(bench.claim("w").await.remove(0).progress));
}

async fn status_message_stays_until_replaced(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    let say = |text: &str| Changes { status_message: Some(text.to_owned()), ..Changes::default() };
    bench.write(&lease, say("building")).await;
    bench.write(&lease, entry("k", json!(1))).await;
    assert_eq!(bench.view("a").await.status_message.as_deref(), Some("building"));
    bench.write(&lease, say("pushing")).await;
    assert_eq!(bench.view("a").await.status_message.as_deref(), Some("pushing"));
}

async fn commit_is_atomic(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    bench.store.release(&lease.worker).await.expect("release succeeds");
    let changes = Changes {
        entries: entry("k", json!(1)).entries,
        segments: vec![SegmentRecord { scope: String::new(), ordinal: 0, block: raw(&json!(1)) }],
        input_requests: vec![super::bench::question("q", "q")],
        withdrawn: Vec::new(),
        invalidated: Vec::new(),
        tags: Vec::new(),
        status_message: Some("gone".to_owned()),
        progress: Some(raw(&json!(1))),
        result_parts: Vec::new(),
        charge: None,
    };
    let then = Transition::End { outcome: done(), retention: LEASE };
    assert!(bench.store.commit(&lease, &changes, &then).await.is_err());
    let view = bench.view("a").await;
    assert!(view.outcome.is_none() && view.input_requests.is_empty());
    assert!(view.status_message.is_none() && view.progress.is_none());
    let journal = bench.claim_one("w").await.journal;
    assert!(journal.entries.is_empty() && journal.segments.is_empty());
}

async fn listeners_are_notified_of_visible_changes(bench: ContractBench) {
    let heard: Arc<[AtomicUsize; 2]> = Arc::default();
    let listener = Arc::clone(&heard);
    bench.store.subscribe(Arc::new(move |_, by| {
        listener[usize::from(by == ChangeSource::Other)].fetch_add(1, Ordering::Relaxed);
    }));
    // Notifications from another process may be late and combined. If their source is unknown, it
    // is `Other`.
    let told_by = async |what: &str, worker: bool| {
        for _ in 0..100 {
            let [by_worker, by_anybody] = &*heard;
            let by_worker = by_worker.swap(0, Ordering::Relaxed);
            if by_anybody.swap(0, Ordering::Relaxed) > 0 || (worker && by_worker > 0) {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        panic!("no notification of {what}");
    };
    bench.queue("queued").await;
    told_by("a queued task", false).await;
    bench
        .store
        .cancel(super::bench::OWNER, &TaskId::new("queued"), true, LEASE)
        .await
        .expect("cancel succeeds");
    told_by("the cancellation", false).await;
    let lease = bench.start("a", "v").await;
    let words = Changes { status_message: Some("at work".to_owned()), ..Changes::default() };
    bench.write(&lease, words).await;
    told_by("words", true).await;
    let segments = vec![emitted("", 0)];
    bench.write(&lease, Changes { segments, ..Changes::default() }).await;
    told_by("a segment", true).await;
    bench.write(&lease, super::bench::ask(&[("k", "n")])).await;
    told_by("the input request", true).await;
    bench.answer("a", &[("n", json!({}))]).await;
    told_by("the input response", false).await;
    bench
        .store
        .cancel(super::bench::OWNER, &lease.task, false, LEASE)
        .await
        .expect("cancel succeeds");
    told_by("the requested cancellation", false).await;
    bench.end(&lease, done()).await;
    told_by("the end", true).await;
}

async fn repeated_commit_is_stored_once(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    let changes = Changes {
        segments: vec![SegmentRecord { scope: String::new(), ordinal: 0, block: raw(&json!("b")) }],
        input_requests: vec![super::bench::question("q", "q")],
        ..entry("k", json!(1))
    };
    // Repeats a commit whose result the worker did not receive.
    bench.write(&lease, changes.clone()).await;
    bench.write(&lease, changes).await;
    assert_eq!(super::bench::names(&bench.view("a").await), ["q"]);
    bench.advance(LEASE * 2);
    assert_eq!(bench.claim_one("w").await.journal.segments.len(), 1);
}

/// Stores may combine concurrent commits. Some of these have a lost lease, end the task or open an
/// input request.
async fn concurrent_commits_change_only_their_own_task(bench: ContractBench) {
    let names: Vec<String> = (0..40).map(|number| format!("task-{number}")).collect();
    let mut leases = Vec::new();
    for name in &names {
        leases.push(bench.start(name, "v").await);
    }
    let asking = leases.iter().step_by(8);
    for lease in asking {
        bench.write(lease, ask(&[("q", "q")])).await;
    }
    let mut writing = JoinSet::new();
    for (number, mut lease) in leases.into_iter().enumerate() {
        let store = Arc::clone(&bench.store);
        let lost = number % 4 == 1;
        lease.epoch += u64::from(lost);
        let then = match number % 4 {
            0 => Transition::End { outcome: done(), retention: RETENTION },
            _ => Transition::Continue,
        };
        let changes = match number % 4 {
            3 => ask(&[("late", "late")]),
            _ => Changes::default(),
        };
        let changes = Changes { entries: entry("k", json!(number)).entries, ..changes };
        writing.spawn(async move {
            let written = store.commit(&lease, &changes, &then).await;
            (number, lost, written)
        });
    }
    for (number, lost, written) in writing.join_all().await {
        assert_eq!(written.is_err(), lost, "task-{number}: {written:?}");
    }
    for (number, name) in names.iter().enumerate() {
        let view = bench.view(name).await;
        let asked = if number % 4 == 3 { 1 } else { 0 };
        assert_eq!(view.input_requests.len(), asked, "{name}");
        assert_eq!(view.outcome.is_some(), number % 4 == 0, "{name}");
    }
    bench.advance(LEASE * 2);
    let claimed = bench.claim("w").await;
    assert_eq!(claimed.len(), 30);
    for task in claimed {
        let number: usize =
            task.lease.task.as_str()["task-".len()..].parse().expect("ID ends with a number");
        let expected = (number % 4 != 1).then(|| json!(number).to_string());
        assert_eq!(recorded(&task.journal, "k"), expected, "task-{number}");
    }
}
