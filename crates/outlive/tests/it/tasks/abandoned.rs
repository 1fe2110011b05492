//! Abandoned tasks: the audit log and the metrics record their cancellation.

use std::{sync::Arc, time::Duration};

use outlive::{
    server::tasks::TaskConfig,
    store::{
        AuditLog, Bridge, BridgeStore, Changes, CreateOutcome, Departure, MemoryStore, NewTask,
        TaskId, TaskStore, Transition, WorkQueue, WorkerId,
    },
};
use serde_json::{json, value::to_raw_value};

use super::world::{Counts, builder};
use crate::support::pipe::Pipe;

const OWNER: &str = "name:ada";
const ABANDON: Duration = Duration::from_secs(60);

/// Creates a parked task whose client has left.
async fn leave_task(store: &MemoryStore, id: &TaskId) {
    let worker = WorkerId::new("former");
    let bridge = Bridge::new(None, "f", worker.clone(), ABANDON);
    let request = to_raw_value(&json!({})).unwrap();
    let new = NewTask::new(id.clone(), OWNER, "render", "modern", request)
        .worker(Some((worker.clone(), ABANDON)))
        .bridge(Some(bridge));
    let Ok(CreateOutcome::Created { lease: Some(lease), .. }) = store.create(new).await else {
        panic!("the task is not created");
    };
    let park = Transition::Park { due_at: None, responses_seen: 0 };
    store.commit(&lease, &Changes::default(), &park).await.unwrap();
    store.leave(OWNER, id, &worker, Departure::Lost).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn abandoned_task_is_audited_and_counted_as_cancelled() {
    let store = Arc::new(MemoryStore::new());
    let config = TaskConfig::new(Arc::clone(&store) as _);
    let server = builder(config, &Counts::default()).build().unwrap();
    // The engine starts with the first use of the tasks.
    let _pipe = Pipe::open(&server);
    let id = TaskId::new("0123456789abcdef0123456789abcdef");
    leave_task(&store, &id).await;
    store.advance_clock(ABANDON);
    tokio::time::sleep(Duration::from_secs(70)).await;
    let view = store.get(OWNER, &id).await.unwrap().unwrap();
    assert!(view.outcome.is_some(), "{view:?}");
    let events = store.read(Some(id.as_str()), 0, 100).await.unwrap();
    let events: Vec<_> = events
        .iter()
        .map(|audit| (audit.event.action.as_str(), audit.event.reason.as_deref()))
        .collect();
    assert_eq!(events, [("cancelled", Some("abandoned by the client"))]);
    assert_eq!(server.metrics().await.cancelled, 1);
}
