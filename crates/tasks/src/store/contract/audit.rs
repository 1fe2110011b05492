//! Checks of the audit log.

use std::time::Duration;

use super::bench::{ContractBench, OWNER, RETENTION, promises};
use crate::store::{AuditEvent, AuditRecord};

promises![
    audit_log_above_maximum_drops_oldest_events,
    audit_events_are_read_in_order,
    audit_events_are_read_unchanged,
    audit_read_with_task_returns_its_events,
    audit_read_after_number_continues_there,
    audit_event_is_deleted_after_retention,
    audit_event_number_is_never_reused,
    append_without_events_changes_nothing,
];

const DAY: Duration = Duration::from_secs(24 * 3600);

fn event(task: &str, what: &str) -> AuditEvent {
    AuditEvent::new(task, OWNER, what)
}

impl ContractBench {
    async fn record(&self, events: Vec<AuditEvent>) {
        self.store.append(events, DAY, u64::MAX).await.expect("append succeeds");
    }

    async fn audit(&self, task: Option<&str>, after: u64, limit: usize) -> Vec<AuditRecord> {
        self.store.read(task, after, limit).await.expect("read succeeds")
    }
}

fn whats(events: &[AuditRecord]) -> Vec<&str> {
    events.iter().map(|audit| audit.event.action.as_str()).collect()
}

async fn audit_events_are_read_in_order(bench: ContractBench) {
    bench.record(vec![event("a", "1"), event("b", "2"), event("a", "3")]).await;
    bench.advance(Duration::from_secs(5));
    bench.record(vec![event("a", "4")]).await;
    let events = bench.audit(None, 0, 100).await;
    assert_eq!(whats(&events), ["1", "2", "3", "4"]);
    assert!(events.is_sorted_by(|one, next| one.number < next.number), "{events:?}");
    assert!(events[0].number > 0, "the first event has a number above 0");
    assert!(events[3].at >= events[0].at + 5_000, "times are from the store's clock: {events:?}");
}

async fn audit_events_are_read_unchanged(bench: ContractBench) {
    let odd = event("ü/#\\", "task-ended")
        .reason(Some("ü \"'\n".to_owned()))
        .worker(Some("wörker-1".to_owned()));
    bench.record(vec![odd.clone(), event("a", "b")]).await;
    let events = bench.audit(None, 0, 100).await;
    assert_eq!(events[0].event, odd);
    assert_eq!((&events[1].event.reason, &events[1].event.worker), (&None, &None));
}

async fn audit_read_with_task_returns_its_events(bench: ContractBench) {
    bench.record(vec![event("a", "1"), event("b", "2"), event("a", "3")]).await;
    assert_eq!(whats(&bench.audit(Some("a"), 0, 100).await), ["1", "3"]);
    assert_eq!(whats(&bench.audit(Some("b"), 0, 100).await), ["2"]);
    assert!(bench.audit(Some("c"), 0, 100).await.is_empty());
}

async fn audit_read_after_number_continues_there(bench: ContractBench) {
    for count in 0..7 {
        let task = if count % 2 == 0 { "a" } else { "b" };
        bench.record(vec![event(task, &count.to_string())]).await;
    }
    for (task, expected) in
        [(None, vec!["0", "1", "2", "3", "4", "5", "6"]), (Some("a"), vec!["0", "2", "4", "6"])]
    {
        let (mut seen, mut after) = (Vec::new(), 0);
        loop {
            let page = bench.audit(task, after, 3).await;
            assert!(page.len() <= 3);
            let Some(last) = page.last() else { break };
            after = last.number;
            seen.extend(page);
        }
        assert_eq!(whats(&seen), expected);
    }
}

async fn audit_event_is_deleted_after_retention(bench: ContractBench) {
    bench.record(vec![event("a", "old")]).await;
    bench.advance(DAY - Duration::from_secs(30));
    bench.store.sweep(100, RETENTION).await.expect("sweep succeeds");
    bench.record(vec![event("a", "new")]).await;
    assert_eq!(whats(&bench.audit(None, 0, 100).await), ["old", "new"]);
    bench.advance(Duration::from_secs(31));
    bench.store.sweep(100, RETENTION).await.expect("sweep succeeds");
    assert_eq!(whats(&bench.audit(None, 0, 100).await), ["new"]);
}

async fn audit_event_number_is_never_reused(bench: ContractBench) {
    bench.record(vec![event("a", "1"), event("a", "2")]).await;
    let last = bench.audit(None, 0, 100).await[1].number;
    bench.advance(DAY + Duration::from_secs(1));
    bench.store.sweep(100, RETENTION).await.expect("sweep succeeds");
    assert!(bench.audit(None, 0, 100).await.is_empty());
    bench.record(vec![event("a", "3")]).await;
    let events = bench.audit(None, last, 100).await;
    assert_eq!(whats(&events), ["3"], "a reader that has read up to {last} sees the new event");
}

async fn append_without_events_changes_nothing(bench: ContractBench) {
    bench.record(Vec::new()).await;
    assert!(bench.audit(None, 0, 100).await.is_empty());
}

async fn audit_log_above_maximum_drops_oldest_events(bench: ContractBench) {
    for what in ["1", "2", "3", "4", "5"] {
        let recorded = bench.store.append(vec![event("a", what), event("b", what)], DAY, 4).await;
        recorded.expect("append succeeds");
    }
    let kept = bench.store.read(None, 0, 100).await.expect("read succeeds");
    let kept: Vec<_> = kept.iter().map(|audit| audit.event.action.as_str()).collect();
    assert_eq!(kept, ["4", "4", "5", "5"]);
}
