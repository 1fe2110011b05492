//! Bulk actions.

use outlive::{
    people::{AuditFilter, BulkAction, BulkId, BulkRequest, People, PeopleError},
    store::{Audience, KeyValueStore as _, TaskCount, TaskQuery, TaskState},
};

use super::world::{World, approval, signed_in};

/// Number of tasks of the tests: more than two batches.
const TASKS: usize = 250;

async fn world() -> World {
    let world = World::new().await;
    for number in 1..TASKS {
        let names = Audience::Names(vec!["ben".to_owned()]);
        let id = format!("task-{number}");
        world.create(&id, "ann", "deploy", vec![approval("#approval", names)]).await;
    }
    world
}

fn request(expect: usize) -> BulkRequest {
    let query = TaskQuery::default().tool(Some("deploy".to_owned()));
    let query = query.state(Some(TaskState::InputRequired));
    let (action, before) = (BulkAction::Cancel, u64::MAX >> 1);
    BulkRequest { action, query, before, name: "INC-42".to_owned(), expect }
}

async fn finish(people: &People, id: &BulkId) {
    while !people.bulk_status(&signed_in("ada"), id).await.unwrap().is_finished {
        tokio::task::yield_now().await;
    }
}

async fn open(people: &People) -> TaskCount {
    let query = request(0).query;
    people.count(&signed_in("ada"), &query).await.unwrap()
}

#[tokio::test]
async fn bulk_action_reaches_all_matching_tasks_under_its_name() {
    let world = world().await;
    let (people, ada) = (&world.people, signed_in("ada"));
    world.create("other-tool", "ann", "secured", vec![approval("x", Audience::Caller)]).await;
    let id = people.bulk(&ada, request(TASKS)).await.unwrap();
    finish(people, &id).await;
    let status = people.bulk_status(&ada, &id).await.unwrap();
    assert_eq!((status.done, status.skipped, status.expect), (TASKS, 0, TASKS));
    assert_eq!((status.name.as_str(), status.by.as_str()), ("INC-42", "operator:ada"));
    assert_eq!(open(people).await.count, 0);
    let others = TaskQuery::default().state(Some(TaskState::InputRequired));
    assert_eq!(people.count(&ada, &others).await.unwrap().count, 1);
    let filter = AuditFilter {
        name: Some("INC-42".to_owned()),
        action: Some("cancelled".to_owned()),
        ..AuditFilter::default()
    };
    let (mut found, mut before) = (0, None);
    loop {
        let page = people.audit(&ada, &filter, before, 200).await.unwrap();
        found += page.records.len();
        match page.next {
            Some(next) => before = Some(next),
            None => break,
        }
    }
    assert_eq!(found, TASKS);
    assert_eq!(world.actions().await[0], "bulk");
}

#[tokio::test]
async fn bulk_action_with_more_matches_than_expected_does_nothing() {
    let world = world().await;
    let ada = signed_in("ada");
    for expect in [0, TASKS - 1, 10_001] {
        let started = world.people.bulk(&ada, request(expect)).await;
        assert!(matches!(started, Err(PeopleError::Invalid(_))), "{started:?}");
    }
    for name in ["", " ", "a: b", &"x".repeat(65), "a\u{202e}b"] {
        let request = BulkRequest { name: name.to_owned(), ..request(TASKS) };
        let started = world.people.bulk(&ada, request).await;
        assert!(matches!(started, Err(PeopleError::Invalid(_))), "{name}: {started:?}");
    }
    assert_eq!(open(&world.people).await.count, TASKS);
    assert!(world.actions().await.is_empty());
}

#[tokio::test]
async fn bulk_action_leaves_tasks_that_were_created_later() {
    let world = world().await;
    let before = outlive_time(&world).await;
    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    world.create("later", "ann", "deploy", vec![approval("x", Audience::Caller)]).await;
    let request = BulkRequest { before, ..request(TASKS) };
    let id = world.people.bulk(&signed_in("ada"), request).await.unwrap();
    finish(&world.people, &id).await;
    assert_eq!(open(&world.people).await.count, 1);
}

/// Returns a time after the creation of all tasks.
async fn outlive_time(world: &World) -> u64 {
    let page = world.people.tasks(&signed_in("ada"), &TaskQuery::default(), None, 1).await.unwrap();
    page.tasks[0].summary.view.created_at + 1
}

#[test]
fn bulk_action_of_a_crashed_process_is_continued_by_another_operator() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let first = runtime();
    let (world, id) = first.block_on(async {
        let world = world().await;
        let people = People::open(world.store.clone()).unwrap();
        let id = people.bulk(&signed_in("ada"), request(TASKS)).await.unwrap();
        (world, id)
    });
    // The process ends before the first batch.
    drop(first);
    runtime().block_on(async {
        let people = People::open(world.store.clone()).unwrap();
        let ada = signed_in("ada");
        let status = people.bulk_status(&ada, &id).await.unwrap();
        assert!(status.is_running && !status.is_finished, "{status:?}");
        let early = people.bulk_continue(&ada, &id).await;
        assert!(matches!(early, Err(PeopleError::Forbidden(_))), "{early:?}");
        // The mark of the crashed process expires after a minute.
        world.store.delete(&format!("bulk-run/{}", id.as_str())).await.unwrap();
        assert!(!people.bulk_status(&ada, &id).await.unwrap().is_running);
        people.bulk_continue(&ada, &id).await.unwrap();
        finish(&people, &id).await;
        assert_eq!(open(&people).await.count, 0);
        assert!(people.bulk_continue(&ada, &id).await.is_ok(), "a finished action stays finished");
        let unknown = people.bulk_status(&ada, &BulkId::new("unknown")).await;
        assert_eq!(unknown.unwrap_err(), PeopleError::NotFound);
    });
}
