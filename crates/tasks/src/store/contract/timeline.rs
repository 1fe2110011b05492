//! Checks of the times of journal entries and input requests.

use std::time::Duration;

use serde_json::json;

use super::{
    bench::{ContractBench, entry, promises, question, raw, value, worker},
    inbox::{approval, by, of_ann, vote},
};
use crate::{
    JournalEntry, JournalSnapshot, StepFailure,
    store::{
        Changes, CreateOutcome, EntryKind, JournalCursor, JournalItem, Lease, RecordedEntry,
        TaskId, TimelineEntry, UnixMillis,
    },
};

promises![
    time_of_step_is_time_of_its_commit,
    repeated_entry_keeps_its_time,
    response_has_time_of_its_commit,
    vote_has_time_of_its_commit,
    entry_from_before_promotion_has_time_of_creation,
    journal_pages_in_order_of_commits,
    timeline_has_kinds_of_all_entries,
    journal_of_unknown_task_is_empty,
    request_has_times_of_its_opening_and_settlement,
];

const PAUSE: Duration = Duration::from_secs(5);

impl ContractBench {
    async fn journal(&self, id: &str) -> Vec<JournalItem> {
        let journal = self.for_people().journal(&TaskId::new(id), None, 100).await;
        journal.expect("read succeeds")
    }

    async fn timeline(&self, id: &str) -> Vec<TimelineEntry> {
        self.for_people().timeline(&TaskId::new(id), 100).await.expect("read succeeds")
    }

    /// Commits a journal entry. Returns the times before and after the commit.
    async fn record_entry(&self, lease: &Lease, entry: RecordedEntry) -> [UnixMillis; 2] {
        let before = self.now().await;
        self.write(lease, Changes { entries: vec![entry], ..Changes::default() }).await;
        let after = self.now().await;
        self.advance(PAUSE);
        [before, after]
    }
}

#[track_caller]
fn is_in(at: UnixMillis, [before, after]: [UnixMillis; 2]) {
    assert!(before <= at && at <= after, "{at} is not in {before} to {after}");
}

fn step(key: &str, millis: u64) -> RecordedEntry {
    RecordedEntry::new(key, value(&json!(1))).duration(Some(Duration::from_millis(millis)))
}

async fn time_of_step_is_time_of_its_commit(bench: ContractBench) {
    let lease = bench.start_of_ann("a").await;
    let first = bench.record_entry(&lease, step("z", 812)).await;
    let second = bench.record_entry(&lease, RecordedEntry::new("a", value(&json!(2)))).await;
    let journal = bench.journal("a").await;
    let keys: Vec<_> = journal.iter().map(|item| (item.key.as_str(), item.duration)).collect();
    assert_eq!(keys, [("z", Some(Duration::from_millis(812))), ("a", None)]);
    is_in(journal[0].recorded_at, first);
    is_in(journal[1].recorded_at, second);
    assert!(matches!(&journal[1].entry, JournalEntry::Value(raw) if raw.get() == "2"));
    let timeline = bench.timeline("a").await;
    let times: Vec<_> = timeline.iter().map(|entry| entry.recorded_at).collect();
    assert_eq!(times, [journal[0].recorded_at, journal[1].recorded_at]);
    assert_eq!(timeline[0].duration, Some(Duration::from_millis(812)));
}

async fn repeated_entry_keeps_its_time(bench: ContractBench) {
    let lease = bench.start_of_ann("a").await;
    let first = bench.record_entry(&lease, step("k", 1)).await;
    bench.record_entry(&lease, step("k", 2)).await;
    let journal = bench.journal("a").await;
    assert_eq!((journal.len(), journal[0].duration), (1, Some(Duration::from_millis(1))));
    is_in(journal[0].recorded_at, first);
}

async fn response_has_time_of_its_commit(bench: ContractBench) {
    let lease = bench.start_of_ann("a").await;
    let asked = Changes { input_requests: vec![question("k", "n")], ..Changes::default() };
    bench.park(&lease, asked).await;
    bench.advance(PAUSE);
    let before = bench.now().await;
    bench.answer("a", &[("n", json!("yes"))]).await;
    let after = bench.now().await;
    let timeline = bench.timeline("a").await;
    assert_eq!((timeline.len(), timeline[0].kind), (1, EntryKind::Input));
    is_in(timeline[0].recorded_at, [before, after]);
}

async fn vote_has_time_of_its_commit(bench: ContractBench) {
    bench.gate("a", by(&["ada"]), 1).await;
    bench.advance(PAUSE);
    let before = bench.now().await;
    bench.decide("a", &vote("ada", true)).await;
    let after = bench.now().await;
    let journal = bench.journal("a").await;
    assert_eq!((journal.len(), journal[0].key.as_str()), (1, "#approval"));
    is_in(journal[0].recorded_at, [before, after]);
}

async fn entry_from_before_promotion_has_time_of_creation(bench: ContractBench) {
    let mut journal = JournalSnapshot::default();
    journal.entries.insert("before".to_owned(), value(&json!(1)));
    let new = of_ann("a").journal(journal).worker(Some((worker("v"), PAUSE)));
    let created = bench.store.create(new).await.expect("create succeeds");
    let CreateOutcome::Created { at, .. } = created else { panic!("{created:?}") };
    bench.advance(PAUSE);
    assert_eq!(bench.timeline("a").await[0].recorded_at, at);
}

async fn journal_pages_in_order_of_commits(bench: ContractBench) {
    let lease = bench.start_of_ann("a").await;
    for (number, keys) in [["m", "c"], ["z", "b"], ["y", "a"]].into_iter().enumerate() {
        let entries = keys.map(|key| RecordedEntry::new(key, value(&json!(number))));
        bench.write(&lease, Changes { entries: entries.to_vec(), ..Changes::default() }).await;
        bench.advance(PAUSE);
    }
    let (mut seen, mut after) = (Vec::new(), None);
    loop {
        let page = bench.for_people().journal(&lease.task, after.as_ref(), 3).await;
        let page = page.expect("read succeeds");
        assert!(page.len() <= 3);
        let Some(last) = page.last() else { break };
        after = Some(JournalCursor::new(last.recorded_at, last.key.clone()));
        seen.extend(page.into_iter().map(|item| item.key));
        assert!(seen.len() <= 6, "a page does not continue after its cursor: {seen:?}");
    }
    assert_eq!(seen, ["c", "m", "b", "z", "a", "y"]);
    let timeline = bench.for_people().timeline(&lease.task, 4).await.expect("read succeeds");
    let keys: Vec<_> = timeline.iter().map(|entry| entry.key.as_str()).collect();
    assert_eq!(keys, ["c", "m", "b", "z"]);
}

async fn timeline_has_kinds_of_all_entries(bench: ContractBench) {
    let lease = bench.start_of_ann("a").await;
    let entries = [
        ("a", value(&json!({"image": "shop:1.4.2"}))),
        ("b", JournalEntry::Secret(raw(&json!("hunter2")))),
        ("c", JournalEntry::Failed(StepFailure::new("no route"))),
        ("d", JournalEntry::Due(7)),
        ("e#once", JournalEntry::Begun),
    ];
    let entries = entries.map(|(key, entry)| RecordedEntry::new(key, entry));
    let input_requests = vec![question("f", "n")];
    let changes = Changes { entries: entries.to_vec(), input_requests, ..Changes::default() };
    bench.write(&lease, changes).await;
    bench.advance(PAUSE);
    bench.answer("a", &[("n", json!(1))]).await;
    let timeline = bench.timeline("a").await;
    let kinds: Vec<_> = timeline.iter().map(|entry| (entry.key.as_str(), entry.kind)).collect();
    let expected = [
        ("a", EntryKind::Step),
        ("b", EntryKind::Step),
        ("c", EntryKind::FailedStep),
        ("d", EntryKind::Timer),
        ("e#once", EntryKind::Timer),
        ("f", EntryKind::Input),
    ];
    assert_eq!(kinds, expected);
    assert!(matches!(bench.journal("a").await[1].entry, JournalEntry::Secret(_)));
}

async fn journal_of_unknown_task_is_empty(bench: ContractBench) {
    assert!(bench.journal("a").await.is_empty());
    assert!(bench.timeline("a").await.is_empty());
    let lease = bench.start_of_ann("a").await;
    bench.write(&lease, entry("k", json!(1))).await;
    assert_eq!(bench.journal("a").await.len(), 1);
    bench.purge("a", true).await;
    assert!(bench.journal("a").await.is_empty());
}

async fn request_has_times_of_its_opening_and_settlement(bench: ContractBench) {
    let lease = bench.start_of_ann("a").await;
    let asked = vec![question("k", "n"), approval(by(&["ada"]), 1)];
    let before = bench.now().await;
    bench.write(&lease, Changes { input_requests: asked, ..Changes::default() }).await;
    let opened = [before, bench.now().await];
    bench.advance(PAUSE);
    let before = bench.now().await;
    bench.answer("a", &[("n", json!(1))]).await;
    let settled = [before, bench.now().await];
    let requests = bench.inspect("a").await.input_requests;
    for request in &requests {
        is_in(request.opened_at, opened);
    }
    is_in(requests[0].settled_at.expect("the request has a response"), settled);
    assert_eq!(requests[1].settled_at, None);
    bench.advance(PAUSE);
    let before = bench.now().await;
    bench.end(&lease, super::bench::done()).await;
    let ended = [before, bench.now().await];
    let requests = bench.inspect("a").await.input_requests;
    is_in(requests[1].settled_at.expect("the request is withdrawn"), ended);
}
