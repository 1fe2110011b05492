//! Lists, votes and deliveries.

use std::{sync::Arc, time::Duration};

use outlive_tasks::store::{
    Audience, AuditEvent, AuditLog, Binding, Changes, Decision, DecisionOutcome, DecisionStore,
    DeliveryQueue, EndAudit, InboxReader, NewTask, PostgresStore, Subscription, TaskEvent, TaskId,
    TaskIndex, TaskOutcome, TaskQuery, TaskStore, Transition, WorkQueue,
};
use serde_json::json;
use tokio::task::JoinSet;

use super::{LEASE, OWNER, Schema, asked, entry, raw, start, task, until};

/// Returns a task with a person, whose end is delivered to a target.
fn notifying(id: &str) -> NewTask {
    let ended = Subscription::new(TaskEvent::TaskEnded, "chat");
    let settled = Subscription::new(TaskEvent::InputRequestSettled, "chat");
    task(id).person(Some("ann".to_owned())).indexed(true).notify(vec![ended, settled])
}

fn done() -> Transition {
    Transition::End { outcome: TaskOutcome::Result(raw(&json!({}))), retention: LEASE }
}

/// Ends a task with the changes that select a combined statement by the number of the task.
async fn end(store: &PostgresStore, new: NewTask, number: usize) {
    let lease = start(store, new).await;
    if number.is_multiple_of(5) {
        let approval = asked("n").audience(Audience::Scope("ops".to_owned()));
        let changes = Changes::default().input_requests(vec![approval]);
        store.commit(&lease, &changes, &Transition::Continue).await.unwrap();
    }
    let changes = match number % 3 {
        0 => Changes::default(),
        1 => entry("k").status_message(Some("almost".to_owned())),
        _ => Changes::default().tags(vec!["order=1".to_owned()]),
    };
    store.commit(&lease, &changes, &done()).await.unwrap();
}

#[tokio::test]
async fn combined_ends_write_all_deliveries_and_withdraw_requests() {
    // Enough tasks that creations are copied and ends share statements.
    const TASKS: usize = 300;
    let schema = Schema::new();
    let store = Arc::new(schema.connect().await);
    let mut running = JoinSet::new();
    for number in 0..TASKS {
        let store = Arc::clone(&store);
        let new = notifying(&format!("t{number}"));
        running.spawn(async move { end(&store, new, number).await });
    }
    while let Some(ended) = running.join_next().await {
        ended.unwrap();
    }
    let due = store.due("chat", LEASE, 1_000).await.unwrap();
    let count = |event| due.iter().filter(|delivery| delivery.event == event).count();
    assert_eq!(count(TaskEvent::TaskEnded), TASKS);
    assert_eq!(count(TaskEvent::InputRequestSettled), TASKS / 5);
    let operator = InboxReader::default().all(true);
    assert!(store.open_for(&operator, None, 10).await.unwrap().is_empty());
    let of_ann = TaskQuery::default().person(Some("ann".to_owned()));
    assert_eq!(store.count(&of_ann, 1_000).await.unwrap().count, TASKS);
    let tagged = TaskQuery::default().tag(Some("order=1".to_owned()));
    assert_eq!(store.count(&tagged, 1_000).await.unwrap().count, TASKS / 3);
    schema.is_counted_right().await;
}

#[tokio::test]
async fn combined_ends_append_one_audit_event_each() {
    const TASKS: usize = 300;
    let schema = Schema::new();
    let store = Arc::new(schema.connect().await);
    let mut running = JoinSet::new();
    for number in 0..TASKS {
        let (store, id) = (Arc::clone(&store), format!("t{number}"));
        let audit = EndAudit::new(id.as_str(), LEASE);
        let new = notifying(&id).end_audit(Some(audit).filter(|_| number.is_multiple_of(2)));
        running.spawn(async move { end(&store, new, number).await });
    }
    while let Some(ended) = running.join_next().await {
        ended.unwrap();
    }
    let log = store.read(None, 0, 1_000).await.unwrap();
    let mut ended: Vec<_> = log.iter().map(|record| record.event.task.as_str()).collect();
    ended.sort_unstable();
    ended.dedup();
    assert_eq!((log.len(), ended.len()), (TASKS / 2, TASKS / 2));
    schema.is_counted_right().await;
}

#[tokio::test]
async fn sweep_that_ends_task_does_not_deadlock_with_append() {
    let schema = Schema::new();
    let store = Arc::new(schema.connect().await);
    let old = AuditEvent::new("old", OWNER, "updated");
    store.append(vec![old], Duration::ZERO, 10).await.unwrap();
    store.create(task("a").end_audit(Some(EndAudit::new("a", LEASE)))).await.unwrap();
    store.advance_clock(Duration::from_secs(601));
    // An append of another replica, before its deletion of the oldest events.
    let by_hand = schema.by_hand().await;
    by_hand.batch_execute("BEGIN; SELECT lock_audit_events()").await.unwrap();
    let sweeps = Arc::clone(&store);
    let sweep = tokio::spawn(async move { sweeps.sweep(10, LEASE).await });
    until("the sweep waits", async || {
        let waits = "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory'
             AND objid = 'audit_event'::regclass::oid AND NOT granted)";
        by_hand.query_one(waits, &[]).await.unwrap().get(0)
    })
    .await;
    by_hand.batch_execute("DELETE FROM audit_event; COMMIT").await.unwrap();
    assert_eq!(sweep.await.unwrap().unwrap().expired.len(), 1);
    let log = store.read(None, 0, 10).await.unwrap();
    let ended = log.iter().map(|record| (record.event.task.as_str(), record.event.action.as_str()));
    assert_eq!(ended.collect::<Vec<_>>(), [("a", "ended")]);
}

#[tokio::test]
async fn texts_of_people_with_any_character_are_stored() {
    let schema = Schema::new();
    let store = schema.connect().await;
    let odd = "a\0\u{e000}'\"\\ü/s%";
    let text = || odd.to_owned();
    let both = Audience::NamesOrScope(vec!["ada".to_owned(), text()], text());
    let approval = asked(odd).audience(both.clone()).binding(Some(Binding::new(odd, odd)));
    let new = task(odd)
        .person(Some("ann".to_owned()))
        .indexed(true)
        .tags(vec![text()])
        .status_message(Some(text()))
        .notify(vec![Subscription::new(TaskEvent::InputRequestOpened, odd)])
        .end_audit(Some(EndAudit::new(odd, LEASE)))
        .input_requests(vec![approval]);
    assert!(store.create(new).await.unwrap().is_new());

    let delivery = store.due(odd, LEASE, 10).await.unwrap().remove(0);
    assert_eq!((delivery.task.as_str(), delivery.input_request.as_deref()), (odd, Some(odd)));
    for reader in [InboxReader::new(odd, Vec::new()), InboxReader::new("cid", vec![text()])] {
        let item = store.open_for(&reader, None, 10).await.unwrap().remove(0);
        assert_eq!((item.task.as_str(), item.name.as_str()), (odd, odd));
        assert_eq!((item.audience, item.binding), (both.clone(), Some(Binding::new(odd, odd))));
    }
    let tagged = TaskQuery::default().tag(Some(text()));
    assert_eq!(store.page(&tagged, None, 10).await.unwrap().tasks.len(), 1);

    let decision = Decision::new(Some(text()), true, raw(&json!(odd)))
        .reason(Some(text()))
        .channel(text())
        .digest(Some(text()));
    let id = TaskId::new(odd);
    let decided = store.decide(&id, odd, &decision).await.unwrap();
    assert_eq!(decided, DecisionOutcome::Settled);
    let vote = store.input_request(&id, odd).await.unwrap().unwrap().votes.remove(0);
    assert_eq!((vote.person.as_str(), vote.channel.as_str()), (odd, odd));
    assert_eq!(vote.reason.as_deref(), Some(odd));
    store.cancel(OWNER, &id, true, LEASE).await.unwrap();
    let log = store.read(Some(odd), 0, 10).await.unwrap();
    assert_eq!((log.len(), log[0].event.action.as_str()), (1, "ended"));
    schema.is_counted_right().await;
}

#[tokio::test]
async fn search_stops_after_maximum_and_continues_from_there() {
    const OTHERS: i64 = 20_050;
    let schema = Schema::new();
    let store = schema.connect().await;
    let new = |id: &str, tool: &str| task(id).indexed(true).tool(tool.to_owned());
    store.create(new("old", "rare")).await.unwrap();
    let others = "INSERT INTO task (id, principal, tool, origin, listed, indexed, phase, epoch,
             created_at, updated_at, max_ttl, started, crash_count, has_cleanup, request)
         SELECT 'x' || n, principal, 'other', origin, true, true, 0, 0, created_at + n, updated_at,
             max_ttl, false, 0, false, request FROM task, generate_series(1, $1::bigint) AS n";
    schema.by_hand().await.execute(others, &[&OTHERS]).await.unwrap();
    let queued = outlive_tasks::store::TaskState::Queued;
    let query = TaskQuery::default().state(Some(queued)).tool(Some("rare".to_owned()));
    let page = store.page(&query, None, 10).await.unwrap();
    assert!(page.tasks.is_empty() && page.searched_to.is_some());
    let counted = store.count(&query, 10).await.unwrap();
    assert_eq!((counted.count, counted.more), (0, true));
    let next = store.page(&query, page.next.as_ref(), 10).await.unwrap();
    assert_eq!(next.tasks[0].summary.view.id, TaskId::new("old"));
    assert_eq!((next.next, next.searched_to), (None, None));
}
