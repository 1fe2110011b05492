//! Checks of abandoned tasks: bridged tasks whose client left and did not return.

use std::time::Duration;

use serde_json::json;

use super::{
    bench::{ContractBench, OWNER, RETENTION, ask, done, outside, promises},
    bridge::{ABANDON, bridged},
};
use crate::store::{CancelOutcome, Departure, NewTask, Phase, SweepReport, TaskId, TaskOutcome};

promises![
    attended_task_is_not_abandoned,
    lost_task_is_cancelled_after_abandon_timeout,
    abandoned_running_task_is_requested_to_stop_and_cleaned_up,
    round_starts_abandon_timeout,
    returning_call_stops_abandon_timeout,
    acknowledged_task_is_not_abandoned,
    open_input_request_restarts_abandon_timeout,
    ended_task_is_not_abandoned,
    expired_task_is_not_abandoned_again,
    partial_sweep_of_abandoned_tasks_reports_more,
];

const SECOND: Duration = Duration::from_secs(1);
const ROUND: Departure = Departure::Round { return_timeout: SECOND };

async fn sweep(bench: &ContractBench) -> SweepReport {
    bench.store.sweep(100, RETENTION).await.expect("sweep succeeds")
}

fn abandoned(id: &str, how: CancelOutcome) -> SweepReport {
    let abandoned = vec![(OWNER.to_owned(), TaskId::new(id), how)];
    SweepReport { abandoned, ..SweepReport::default() }
}

async fn attended_task_is_not_abandoned(bench: ContractBench) {
    bench.bridge("a").await;
    bench.advance(2 * ABANDON);
    assert_eq!(sweep(&bench).await, SweepReport::default());
}

async fn lost_task_is_cancelled_after_abandon_timeout(bench: ContractBench) {
    bench.bridge("a").await;
    bench.advance(ABANDON);
    bench.leave("a", "v", Departure::Lost).await;
    bench.advance(ABANDON - 5 * SECOND);
    assert_eq!(sweep(&bench).await, SweepReport::default());
    bench.advance(6 * SECOND);
    assert_eq!(sweep(&bench).await, abandoned("a", CancelOutcome::Cancelled));
    let view = bench.view("a").await;
    assert!(
        matches!(view.outcome, Some(TaskOutcome::Cancelled)) && view.cancel_requested.is_some()
    );
    assert_eq!(sweep(&bench).await, SweepReport::default(), "the task is reported once");
    assert_eq!(bench.join().await, None);
    assert!(bench.claim("w").await.is_empty());
}

async fn abandoned_running_task_is_requested_to_stop_and_cleaned_up(bench: ContractBench) {
    let lease = bench.bridge_started(NewTask { clean_up: true, ..bridged("a") }).await;
    bench.leave("a", "v", Departure::Lost).await;
    bench.advance(ABANDON + SECOND);
    bench.store.renew(&lease.worker, ABANDON).await.expect("renewal succeeds");
    assert_eq!(sweep(&bench).await, abandoned("a", CancelOutcome::Requested));
    assert!(bench.store.inbox(&lease).await.expect("read succeeds").cancel_requested);
    assert_eq!(bench.view("a").await.phase, Phase::Running);
    assert_eq!(bench.join().await, None, "no call joins a run that stops");
    bench.end(&lease, TaskOutcome::Cancelled).await;
    assert!(bench.claim_one("w").await.ended.is_some(), "the cleanup is due");
    assert_eq!(sweep(&bench).await, SweepReport::default());
}

async fn round_starts_abandon_timeout(bench: ContractBench) {
    bench.bridge("a").await;
    bench.leave("a", "v", ROUND).await;
    bench.advance(ABANDON + SECOND);
    assert_eq!(sweep(&bench).await, abandoned("a", CancelOutcome::Cancelled));
}

async fn returning_call_stops_abandon_timeout(bench: ContractBench) {
    for id in ["attended", "pending", "joined"] {
        bench.bridge(id).await;
        bench.leave(id, "v", Departure::Lost).await;
    }
    bench.attend("attended", "w").await.expect("the task exists");
    bench.leave("pending", "v", Departure::PendingResult).await;
    bench.attend("pending", "w").await.expect("the task exists");
    assert_eq!(bench.join().await.as_deref(), Some("joined"));
    bench.advance(2 * ABANDON);
    assert_eq!(sweep(&bench).await, SweepReport::default());
    bench.leave("attended", "w", ROUND).await;
    bench.leave("joined", "w", Departure::Lost).await;
    bench.advance(ABANDON - 5 * SECOND);
    assert_eq!(sweep(&bench).await, SweepReport::default(), "the timeout has started again");
    bench.advance(6 * SECOND);
    assert_eq!(sweep(&bench).await.abandoned.len(), 2);
}

async fn acknowledged_task_is_not_abandoned(bench: ContractBench) {
    bench.bridge("a").await;
    bench.leave("a", "v", Departure::PendingResult).await;
    for how in [Departure::Lost, ROUND] {
        bench.attend("a", "w").await.expect("the task exists");
        bench.leave("a", "w", how).await;
        bench.advance(2 * ABANDON);
        assert_eq!(sweep(&bench).await, SweepReport::default(), "the client knows the task");
    }
    assert_eq!(bench.join().await.as_deref(), Some("a"));
}

async fn open_input_request_restarts_abandon_timeout(bench: ContractBench) {
    let lease = bench.bridge_started(bridged("a")).await;
    bench.park(&lease, ask(&[("k", "n")])).await;
    let outside_lease = bench.bridge_started(bridged("b")).await;
    bench.park(&outside_lease, outside("k", "n")).await;
    for id in ["a", "b"] {
        bench.leave(id, "v", Departure::Lost).await;
    }
    for _ in 0..3 {
        bench.advance(ABANDON + SECOND);
        assert_eq!(sweep(&bench).await, SweepReport::default());
    }
    bench.answer("a", &[("n", json!(1))]).await;
    bench.advance(ABANDON - 5 * SECOND);
    assert_eq!(sweep(&bench).await, SweepReport::default());
    bench.advance(6 * SECOND);
    assert_eq!(sweep(&bench).await, abandoned("a", CancelOutcome::Cancelled));
}

async fn ended_task_is_not_abandoned(bench: ContractBench) {
    let lease = bench.bridge_started(bridged("a")).await;
    bench.leave("a", "v", Departure::Lost).await;
    bench.end(&lease, done()).await;
    bench.advance(ABANDON + SECOND);
    assert_eq!(sweep(&bench).await, SweepReport::default());
    assert!(matches!(bench.view("a").await.outcome, Some(TaskOutcome::Result(_))));
    assert_eq!(bench.join().await.as_deref(), Some("a"), "a repeated call gets the result");
}

async fn expired_task_is_not_abandoned_again(bench: ContractBench) {
    let brief = NewTask { ttl: Some(ABANDON), ..bridged("a") };
    bench.store.create(brief).await.expect("create succeeds");
    bench.leave("a", "v", Departure::Lost).await;
    bench.advance(ABANDON + SECOND);
    let expired = vec![(OWNER.to_owned(), TaskId::new("a"))];
    assert_eq!(sweep(&bench).await, SweepReport { expired, ..SweepReport::default() });
    assert!(matches!(bench.view("a").await.outcome, Some(TaskOutcome::Expired)));
}

async fn partial_sweep_of_abandoned_tasks_reports_more(bench: ContractBench) {
    for id in ["a", "b", "c", "d", "e"] {
        bench.bridge(id).await;
        bench.leave(id, "v", Departure::Lost).await;
    }
    bench.advance(ABANDON + SECOND);
    let mut counts = Vec::new();
    loop {
        let swept = bench.store.sweep(2, RETENTION).await.expect("sweep succeeds");
        counts.push(swept.abandoned.len());
        if !swept.more {
            break;
        }
    }
    assert_eq!(counts, [2, 2, 1]);
}
