//! Inboxes, votes, tags and deliveries in a file.

use std::time::Duration;

use outlive_tasks::JournalEntry;
use outlive_tasks::store::{
    Audience, Binding, Changes, Decision, DecisionOutcome, DecisionStore, DeliveryQueue, EndAudit,
    InboxReader, MAX_DELIVERIES, NewTask, OperatorStore, PurgeOutcome, RecordedEntry, SqliteStore,
    Subscription, TaskEvent, TaskId, TaskIndex, TaskOutcome, TaskQuery, TaskStore, Transition,
    WorkQueue,
};
use serde_json::json;

use super::{Folder, OWNER, asked, raw, start, task};

const RETENTION: Duration = Duration::from_secs(60);

/// A task that two of three people must approve, with all subscriptions, a tag and an end event.
fn gated(id: &str) -> NewTask {
    let names = ["ada", "ben", "cid"].map(str::to_owned).to_vec();
    let approval = asked("#approval")
        .audience(Audience::Names(names))
        .binding(Some(Binding::new("digest", "definition").count(2)));
    let notify = TaskEvent::ALL.map(|event| Subscription::new(event, "chat")).to_vec();
    task(id)
        .person(Some("ann".to_owned()))
        .indexed(true)
        .tags(vec!["order=4711".to_owned()])
        .input_requests(vec![approval])
        .notify(notify)
        .end_audit(Some(EndAudit::new(id, RETENTION)))
}

fn vote(person: &str) -> Decision {
    Decision::new(Some(person.to_owned()), true, raw(&json!({"action": "accept"})))
        .digest(Some("digest".to_owned()))
}

fn inbox(person: &str) -> InboxReader {
    InboxReader::new(person, Vec::new())
}

async fn events(store: &SqliteStore) -> Vec<TaskEvent> {
    let due = store.due("chat", Duration::from_secs(60), 100).await.unwrap();
    due.iter().map(|delivery| delivery.event).collect()
}

fn rows(folder: &Folder, table: &str) -> i64 {
    let by_hand = rusqlite::Connection::open(folder.file()).unwrap();
    let count = format!("SELECT count(*) FROM {table}");
    by_hand.query_row(&count, [], |row| row.get(0)).unwrap()
}

#[tokio::test]
async fn acknowledged_vote_survives_reopening() {
    let folder = Folder::new();
    let store = SqliteStore::open(folder.file()).unwrap();
    let id = TaskId::new("a");
    store.create(gated("a")).await.unwrap();
    let counted = store.decide(&id, "#approval", &vote("ada")).await.unwrap();
    assert_eq!(counted, DecisionOutcome::Counted { approvals: 1, needed: 2 });
    drop(store);

    let store = SqliteStore::open(folder.file()).unwrap();
    assert_eq!(store.open_for(&inbox("ben"), None, 10).await.unwrap()[0].approvals, 1);
    let again = store.decide(&id, "#approval", &vote("ada")).await.unwrap();
    assert_eq!(again, DecisionOutcome::AlreadyVoted);
    let settled = store.decide(&id, "#approval", &vote("ben")).await.unwrap();
    assert_eq!(settled, DecisionOutcome::Settled);
    drop(store);

    let store = SqliteStore::open(folder.file()).unwrap();
    assert_eq!(store.next_due(&[]).await.unwrap(), Some(Duration::ZERO), "the task is queued");
    assert!(store.open_for(&inbox("cid"), None, 10).await.unwrap().is_empty());
    let expected = [TaskEvent::InputRequestOpened, TaskEvent::InputRequestSettled];
    assert_eq!(events(&store).await, expected);
}

#[tokio::test]
async fn unindexed_task_is_in_no_index_of_people() {
    let folder = Folder::new();
    let store = SqliteStore::open(folder.file()).unwrap();
    let new = task("a").person(Some("ann".to_owned())).tags(vec!["order=4711".to_owned()]);
    let lease = start(&store, new).await;
    let step = RecordedEntry::new("step", JournalEntry::Value(raw(&json!(1))));
    let step = step.duration(Some(Duration::from_millis(5)));
    let changes = Changes::default()
        .entries(vec![step])
        .input_requests(vec![asked("q")])
        .tags(vec!["order=4712".to_owned()]);
    store.commit(&lease, &changes, &Transition::Continue).await.unwrap();
    for empty in [
        "addressee",
        "tag",
        "delivery",
        "task WHERE indexed = 1 OR tags IS NOT NULL",
        "input_request WHERE in_inbox = 1",
        "journal_entry WHERE recorded_at IS NOT NULL OR duration IS NOT NULL",
    ] {
        assert_eq!(rows(&folder, empty), 0, "{empty}");
    }
    let timeline = store.timeline(&lease.task, 10).await.unwrap();
    let created = store.get(OWNER, &lease.task).await.unwrap().unwrap().created_at;
    assert_eq!((timeline.len(), timeline[0].recorded_at), (1, created));
}

#[tokio::test]
async fn deleted_task_leaves_only_its_deliveries() {
    let folder = Folder::new();
    let store = SqliteStore::open(folder.file()).unwrap();
    for id in ["ended", "open"] {
        store.create(gated(id)).await.unwrap();
        store.decide(&TaskId::new(id), "#approval", &vote("ada")).await.unwrap();
    }
    store.cancel(OWNER, &TaskId::new("ended"), true, RETENTION).await.unwrap();
    let both = store.count(&TaskQuery::default().tag(Some("order=4711".to_owned())), 10).await;
    assert_eq!(both.unwrap().count, 2);
    for (id, force) in [("ended", false), ("open", true)] {
        let purged = store.purge(&TaskId::new(id), force).await.unwrap();
        assert!(matches!(purged, Some(PurgeOutcome::Purged(..))), "{purged:?}");
    }
    for empty in ["task", "input_request", "vote", "addressee", "tag", "principal_quota"] {
        assert_eq!(rows(&folder, empty), 0, "{empty}");
    }
    let events = events(&store).await;
    let count = |event| events.iter().filter(|one| **one == event).count();
    let [opened, settled, ended, _] = TaskEvent::ALL.map(count);
    assert_eq!((opened, settled, ended), (2, 1, 1), "a forced deletion delivers nothing");
    assert_eq!(rows(&folder, "audit_event"), 1, "a forced deletion appends no event");
    assert_eq!(rows(&folder, "audit_event WHERE task = 'ended' AND action = 'ended'"), 1);
}

#[tokio::test]
async fn request_opened_again_has_no_votes() {
    let folder = Folder::new();
    let store = SqliteStore::open(folder.file()).unwrap();
    let new = gated("a").input_requests(Vec::new());
    let lease = start(&store, new).await;
    let before = rows(&folder, "principal_quota WHERE bytes > 0");
    let asked = gated("b").input_requests;
    let open = Changes::default().input_requests(asked);
    store.commit(&lease, &open, &Transition::Continue).await.unwrap();
    store.decide(&lease.task, "#approval", &vote("ada")).await.unwrap();
    let withdraw = Changes::default().withdrawn(vec!["#approval".to_owned()]);
    store.commit(&lease, &withdraw, &Transition::Continue).await.unwrap();
    assert_eq!(rows(&folder, "addressee"), 0);
    store.commit(&lease, &open, &Transition::Continue).await.unwrap();
    assert_eq!((rows(&folder, "vote"), rows(&folder, "addressee")), (0, 4), "with operators");
    let counted = store.decide(&lease.task, "#approval", &vote("ada")).await.unwrap();
    assert_eq!(counted, DecisionOutcome::Counted { approvals: 1, needed: 2 });
    let end =
        Transition::End { outcome: TaskOutcome::Result(raw(&json!({}))), retention: RETENTION };
    store.commit(&lease, &Changes::default(), &end).await.unwrap();
    store.purge(&lease.task, false).await.unwrap();
    let after = rows(&folder, "principal_quota WHERE bytes > 0");
    assert_eq!((before, after), (1, 0), "the bytes of all votes are counted once");
}

#[tokio::test]
async fn oldest_deliveries_above_maximum_are_deleted() {
    let folder = Folder::new();
    let store = SqliteStore::open(folder.file()).unwrap();
    let by_hand = rusqlite::Connection::open(folder.file()).unwrap();
    let max = i64::try_from(MAX_DELIVERIES).unwrap();
    let fill = "WITH RECURSIVE row (number) AS (
            SELECT 1 UNION ALL SELECT number + 1 FROM row WHERE number < ?1)
        INSERT INTO delivery (number, id, task, event, target, recorded_at, due_at, attempts)
        SELECT number, 'd' || number, 'a', 'task.ended', 'chat', unixepoch() * 1000, 0, 0 FROM row";
    by_hand.execute(fill, [max + 3]).unwrap();
    by_hand.execute("DELETE FROM delivery WHERE number = 50", []).unwrap();
    store.sweep(10, RETENTION).await.unwrap();
    assert_eq!(rows(&folder, "delivery"), max);
    assert_eq!(rows(&folder, "delivery WHERE number < 3"), 0, "the two oldest are deleted");
    store.sweep(10, RETENTION).await.unwrap();
    assert_eq!(rows(&folder, "delivery"), max);
}
