//! Checks of the parts of large results.

use std::time::Duration;

use serde_json::json;

use super::bench::{ContractBench, OWNER, RETENTION, TTL, done, promises, raw};
use crate::store::{
    Changes, Charge, Lease, OUTCOME_RESERVE, OutcomeKind, PART_BYTES, Phase, ResultPart,
    StoreError, TaskId, TaskOutcome, Transition, assemble,
};

promises![
    parts_of_ended_task_are_read_by_its_principal_only,
    large_result_is_assembled_byte_for_byte,
    parts_count_in_stored_bytes_until_task_is_deleted,
    parts_above_byte_limit_are_rejected_with_their_commit,
    parts_of_lost_lease_are_not_written,
    deleted_parts_free_bytes_and_keep_task,
];

const EVE: &str = "name:eve";

/// Returns an outcome of more than 64 KiB, and its parts.
fn large() -> (TaskOutcome, Vec<ResultPart>) {
    let text = "ä\0\u{e000}\n".repeat(40_000);
    let result = raw(&json!({"content": [{"type": "text", "text": text}], "isError": true}));
    let mut outcome = TaskOutcome::Result(result);
    let parts = outcome.take_parts();
    assert!(parts.len() > 2, "the result has several parts");
    (outcome, parts)
}

impl ContractBench {
    async fn part(&self, principal: &str, task: &str, block: u32, part: u32) -> Option<Vec<u8>> {
        let read = self.store.read_part(principal, &TaskId::new(task), block, part).await;
        read.expect("read succeeds").map(|body| body.to_vec())
    }

    async fn all_bytes(&self) -> u64 {
        self.store.stored_bytes(OWNER).await.expect("read succeeds")
    }

    async fn end_large(&self, lease: &Lease, max_bytes: u64) -> Result<(), StoreError> {
        let (outcome, result_parts) = large();
        let charge = Some(Charge::new(OWNER, max_bytes));
        let changes = Changes { result_parts, charge, ..Changes::default() };
        let then = Transition::End { outcome, retention: RETENTION };
        self.store.commit(lease, &changes, &then).await
    }
}

async fn parts_of_ended_task_are_read_by_its_principal_only(bench: ContractBench) {
    let lease = bench.start("a", "w").await;
    assert_eq!(bench.part(OWNER, "a", 0, 0).await, None, "the task has not ended");
    bench.end_large(&lease, u64::MAX).await.expect("commit succeeds");
    let (_, parts) = large();
    for part in &parts {
        let read = bench.part(OWNER, "a", part.block, part.number).await;
        assert_eq!(read.as_deref(), Some(&*part.body), "part {}", part.number);
    }
    let last = u32::try_from(parts.len()).expect("few parts");
    assert_eq!(bench.part(OWNER, "a", 0, last).await, None, "an unknown part");
    assert_eq!(bench.part(OWNER, "a", 1, 0).await, None, "an unknown body");
    assert_eq!(bench.part(OWNER, "b", 0, 0).await, None, "an unknown task");
    assert_eq!(bench.part(EVE, "a", 0, 0).await, None, "the task belongs to another principal");
}

async fn large_result_is_assembled_byte_for_byte(bench: ContractBench) {
    let lease = bench.start("a", "w").await;
    let lines: Vec<_> = (0..5_000).map(|line| format!("line {line} \"ü\"")).collect();
    let blocks: Vec<_> = lines.iter().map(|text| json!({"text": text, "type": "text"})).collect();
    // The order of members differs from ours, so these blocks are stored as JSON.
    let sorted = raw(&json!({"content": blocks, "structuredContent": {"lines": lines}}));
    let mut outcome = TaskOutcome::Result(sorted.clone());
    let changes = Changes { result_parts: outcome.take_parts(), ..Changes::default() };
    assert_eq!(outcome.kind(), OutcomeKind::Completed);
    let then = Transition::End { outcome, retention: RETENTION };
    bench.store.commit(&lease, &changes, &then).await.expect("commit succeeds");
    let record = bench.view("a").await;
    let Some(TaskOutcome::LargeResult(large)) = record.outcome else {
        panic!("expected a large result: {record:?}");
    };
    assert!(large.head.get().len() < PART_BYTES, "the record has no body");
    let id = TaskId::new("a");
    let whole = assemble(&*bench.store, OWNER, &id, &large).await.expect("read succeeds");
    assert_eq!(whole.expect("the parts exist").get(), sorted.get());
    let foreign = assemble(&*bench.store, EVE, &id, &large).await.expect("read succeeds");
    assert!(foreign.is_none(), "the task belongs to another principal");
}

async fn parts_count_in_stored_bytes_until_task_is_deleted(bench: ContractBench) {
    let lease = bench.start("a", "w").await;
    let before = bench.all_bytes().await;
    bench.end_large(&lease, u64::MAX).await.expect("commit succeeds");
    let (_, parts) = large();
    let bytes: usize = parts.iter().map(|part| part.body.len()).sum();
    assert!(bench.all_bytes().await >= before + bytes as u64);
    bench.advance(RETENTION + TTL + Duration::from_secs(1));
    for _ in 0..2 {
        bench.store.sweep(100, RETENTION).await.expect("sweep succeeds");
    }
    assert!(bench.is_gone("a").await);
    assert_eq!(bench.part(OWNER, "a", 0, 0).await, None);
    assert_eq!(bench.all_bytes().await, 0);
    assert_eq!(bench.store.stats().await.expect("stats succeed").bytes, 0);
}

async fn parts_above_byte_limit_are_rejected_with_their_commit(bench: ContractBench) {
    let lease = bench.start("a", "w").await;
    let before = bench.all_bytes().await;
    let limit = before + 2 * PART_BYTES as u64;
    assert_eq!(bench.end_large(&lease, limit).await, Err(StoreError::BytesExceeded));
    assert_eq!(bench.all_bytes().await, before, "nothing was written");
    assert_eq!(bench.part(OWNER, "a", 0, 0).await, None);
    assert_eq!(bench.view("a").await.phase, Phase::Running);
    bench.end(&lease, done()).await;
    assert!(bench.all_bytes().await <= before + OUTCOME_RESERVE as u64);
}

async fn parts_of_lost_lease_are_not_written(bench: ContractBench) {
    let lease = bench.start("a", "w").await;
    bench.store.release(&lease.worker).await.expect("release succeeds");
    assert_eq!(bench.end_large(&lease, u64::MAX).await, Err(StoreError::LeaseLost));
    assert_eq!(bench.part(OWNER, "a", 0, 0).await, None);
}

async fn deleted_parts_free_bytes_and_keep_task(bench: ContractBench) {
    let (lease, id) = (bench.start("a", "w").await, TaskId::new("a"));
    bench.end_large(&lease, u64::MAX).await.expect("commit succeeds");
    let before = bench.all_bytes().await;
    let delete =
        async |principal| bench.store.delete_parts(principal, &id).await.expect("delete succeeds");
    assert_eq!(delete(EVE).await, 0, "the task belongs to another principal");
    assert_eq!(bench.all_bytes().await, before);
    let freed = delete(OWNER).await;
    assert!(freed > PART_BYTES as u64, "{freed}");
    assert_eq!(bench.all_bytes().await, before - freed);
    assert_eq!(delete(OWNER).await, 0, "they are deleted once");
    assert_eq!(bench.part(OWNER, "a", 0, 0).await, None);
    assert_eq!(bench.view("a").await.phase, Phase::Ended, "the task stays readable");
}
