//! The audit log, newest first.

use std::time::Duration;

use outlive::{
    people::{AuditFilter, Visitor},
    store::{AuditEvent, AuditLog as _},
};

use super::world::{World, signed_in};

/// Appends events of two tasks in turn.
async fn append(world: &World, count: usize) {
    let event = |number: usize| {
        let (task, principal) = match number % 2 {
            0 => ("task-of-ann", "name:ann"),
            _ => ("another", "name:eve"),
        };
        AuditEvent::new(task, principal, if number.is_multiple_of(100) { "rare" } else { "common" })
    };
    let events = (0..count).map(event).collect();
    world.store.append(events, Duration::from_secs(3_600), u64::MAX).await.unwrap();
}

/// Returns the numbers of all events that match, page by page.
async fn all(world: &World, visitor: &Visitor, filter: &AuditFilter) -> Vec<u64> {
    let (mut numbers, mut before) = (Vec::new(), None);
    loop {
        let page = world.people.audit(visitor, filter, before, 50).await.unwrap();
        numbers.extend(page.records.iter().map(|record| record.number));
        match page.next {
            Some(next) => before = Some(next),
            None => return numbers,
        }
    }
}

#[tokio::test]
async fn operator_reads_all_events_newest_first() {
    let world = World::new().await;
    let ada = signed_in("ada");
    assert!(all(&world, &ada, &AuditFilter::default()).await.is_empty());
    append(&world, 2_500).await;
    let numbers = all(&world, &ada, &AuditFilter::default()).await;
    assert_eq!(numbers.len(), 2_500);
    assert!(numbers.is_sorted_by(|one, other| one > other));
    // A later event is found from the last known one.
    append(&world, 3).await;
    let page = world.people.audit(&ada, &AuditFilter::default(), None, 5).await.unwrap();
    assert_eq!(page.records[0].number, numbers[0] + 3);
}

#[tokio::test]
async fn filters_select_by_action_and_actor() {
    let world = World::new().await;
    append(&world, 2_500).await;
    let ada = signed_in("ada");
    let rare = AuditFilter { action: Some("rare".to_owned()), ..AuditFilter::default() };
    assert_eq!(all(&world, &ada, &rare).await.len(), 25);
    let eve = AuditFilter { actor: Some("eve".to_owned()), ..AuditFilter::default() };
    assert_eq!(all(&world, &ada, &eve).await.len(), 1_250);
    let both = AuditFilter { actor: Some("name:eve".to_owned()), ..rare };
    assert!(all(&world, &ada, &both).await.is_empty());
}

#[tokio::test]
async fn person_reads_the_events_of_own_tasks() {
    let world = World::new().await;
    append(&world, 300).await;
    assert_eq!(all(&world, &signed_in("ann"), &AuditFilter::default()).await.len(), 150);
    assert!(all(&world, &signed_in("eve"), &AuditFilter::default()).await.is_empty());
    let task = AuditFilter { task: Some(world.task.clone()), ..AuditFilter::default() };
    assert_eq!(all(&world, &signed_in("ann"), &task).await.len(), 150);
    assert_eq!(world.people.task_audit(&signed_in("ann"), &world.task).await.unwrap().len(), 150);
}

#[tokio::test]
async fn search_ends_after_a_limit_and_says_how_far_it_went() {
    let world = World::new().await;
    append(&world, 25_000).await;
    let none = AuditFilter { action: Some("never".to_owned()), ..AuditFilter::default() };
    let page = world.people.audit(&signed_in("ada"), &none, None, 50).await.unwrap();
    assert!(page.records.is_empty() && page.searched_to.is_some() && page.next.is_some());
    let rest = world.people.audit(&signed_in("ada"), &none, page.next, 50).await.unwrap();
    assert!(rest.records.is_empty() && rest.searched_to.is_none() && rest.next.is_none());
}

#[tokio::test]
async fn sign_in_is_recorded_with_person_and_channel() {
    let world = World::new().await;
    world.people.signed_in(&signed_in("ada")).await.unwrap();
    let expected = ("operator:ada".into(), "signed-in".into(), Some("by ada, console".to_owned()));
    assert_eq!(world.events().await, [expected]);
}
