//! Failed attempts: the schedule, redirects, `Retry-After`, 410, slow receivers, lost senders.

use std::{sync::Arc, time::Duration};

use outlive::{
    deliveries::{Target, TaskEvent},
    server::Principal,
    store::{
        Changes, CreateOutcome, Delivery, DeliveryQueue, MemoryStore, NewTask, Subscription,
        TaskId, TaskOutcome, TaskStore, Transition, WorkQueue, WorkerId,
    },
};
use serde_json::{json, value::to_raw_value};
use tokio::time::{Instant, sleep};

use super::receiver::{Receiver, Reply, builder, call, serve};
use crate::support::pipe::Pipe;

/// Waits until a number of deliveries has failed, and returns them.
async fn failing(store: &Arc<MemoryStore>, count: usize) -> Vec<Delivery> {
    for _ in 0..1_000 {
        let failing = store.failing(100).await.unwrap();
        if failing.len() >= count && failing.iter().all(|delivery| delivery.error.is_some()) {
            return failing;
        }
        sleep(Duration::from_millis(10)).await;
    }
    panic!("{count} deliveries never failed: {:?}", store.failing(100).await)
}

/// Waits until no delivery to a target is stored.
async fn until_delivered(store: &Arc<MemoryStore>, target: &str) {
    for _ in 0..1_000 {
        let none_due = store.next_delivery(&[target.to_owned()]).await.unwrap().is_none();
        if none_due && store.failing(100).await.unwrap().is_empty() {
            return;
        }
        sleep(Duration::from_millis(10)).await;
    }
    panic!("a delivery stays: {:?}", store.next_delivery(&[target.to_owned()]).await)
}

fn ended(target: Target) -> Target {
    target.events([TaskEvent::TaskEnded])
}

/// Seconds until the next attempt of a delivery.
async fn next_attempt(store: &Arc<MemoryStore>, target: &str) -> f64 {
    let next = store.next_delivery(&[target.to_owned()]).await.unwrap();
    next.expect("an attempt is planned").as_secs_f64()
}

#[tokio::test]
async fn failed_message_is_sent_again_with_the_same_id() {
    let store = Arc::new(MemoryStore::new());
    let receiver = Receiver::start([Reply::Status(500), Reply::Status(200)]).await;
    let (_server, mut pipe) = serve(&store, ended(receiver.target("hook")));
    call(&mut pipe, "deploy").await;
    let failed = failing(&store, 1).await.remove(0);
    assert_eq!(failed.error.as_deref(), Some("the receiver returned HTTP 500"));
    assert_eq!(failed.attempts, 1);
    let seconds = next_attempt(&store, "hook").await;
    assert!((3.0..=6.0).contains(&seconds), "5 seconds, varied by a fifth: {seconds}");
    let received = receiver.wait_for(2).await;
    let ids = [0, 1].map(|index| received[index].header("webhook-id").to_owned());
    assert_eq!(ids, [failed.id.clone(), failed.id]);
    assert_eq!(received[0].body, received[1].body);
    until_delivered(&store, "hook").await;
}

#[tokio::test]
async fn redirect_is_a_failure_and_not_followed() {
    for status in [301, 302, 303, 307, 308] {
        let store = Arc::new(MemoryStore::new());
        let other = Receiver::start([]).await;
        let receiver = Receiver::start([Reply::With(status, "location", other.url.clone())]).await;
        let (_server, mut pipe) = serve(&store, ended(receiver.target("hook")));
        call(&mut pipe, "deploy").await;
        let error = failing(&store, 1).await.remove(0).error.unwrap();
        assert!(error.contains("redirects are not followed"), "{error}");
        assert!(other.received().is_empty());
        assert_eq!(receiver.received().len(), 1);
    }
}

#[tokio::test]
async fn retry_after_of_busy_receiver_extends_the_delay() {
    for (status, value, range) in [
        (429, "120", 100.0..=120.0),
        (503, "120", 100.0..=120.0),
        (429, "1", 3.0..=6.0),
        (500, "120", 3.0..=6.0),
        (429, "999999999999", 86_000.0..=86_400.0),
    ] {
        let store = Arc::new(MemoryStore::new());
        let receiver =
            Receiver::start([Reply::With(status, "retry-after", value.to_owned())]).await;
        let (_server, mut pipe) = serve(&store, ended(receiver.target("hook")));
        call(&mut pipe, "deploy").await;
        failing(&store, 1).await;
        let seconds = next_attempt(&store, "hook").await;
        assert!(range.contains(&seconds), "{status} {value}: {seconds}");
    }
}

#[tokio::test]
async fn receiver_that_is_gone_gets_no_further_message() {
    let store = Arc::new(MemoryStore::new());
    let gone = Receiver::start([Reply::Status(410)]).await;
    let other = Receiver::start([]).await;
    let server =
        builder(&store).notify(ended(gone.target("gone"))).notify(ended(other.target("other")));
    let server = server.build().unwrap();
    let mut pipe = Pipe::open(&server);
    call(&mut pipe, "deploy").await;
    let dead = failing(&store, 1).await.remove(0);
    assert_eq!((dead.target.as_str(), dead.due_at), ("gone", None));
    call(&mut pipe, "deploy").await;
    let dead = failing(&store, 2).await;
    assert!(dead.iter().all(|delivery| delivery.due_at.is_none()), "{dead:?}");
    assert_eq!(gone.received().len(), 1, "the target stopped");
    assert_eq!(other.wait_for(2).await.len(), 2, "the other target did not");
}

#[tokio::test]
async fn slow_receiver_delays_no_other_and_has_four_attempts() {
    const TASKS: usize = 8;
    let store = Arc::new(MemoryStore::new());
    let slow = Receiver::start(vec![Reply::Hang; TASKS]).await;
    let fast = Receiver::start([]).await;
    let server =
        builder(&store).notify(ended(slow.target("slow"))).notify(ended(fast.target("fast")));
    let server = server.build().unwrap();
    let mut pipe = Pipe::open(&server);
    let started = Instant::now();
    for _ in 0..TASKS {
        call(&mut pipe, "deploy").await;
    }
    fast.wait_for(TASKS).await;
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    slow.wait_for(4).await;
    assert_eq!((slow.received().len(), slow.most_open()), (4, 4));
}

#[tokio::test]
async fn delivery_of_lost_sender_is_sent_after_its_lease() {
    let store = Arc::new(MemoryStore::new());
    ended_task(&store, "t1").await;
    // A sender that crashes leaves its lease.
    let lease = Duration::from_millis(300);
    let leased = store.due("hook", lease, 10).await.unwrap();
    assert_eq!(leased.len(), 1);
    assert!(store.due("hook", lease, 10).await.unwrap().is_empty(), "one sender at a time");
    let receiver = Receiver::start([]).await;
    let started = Instant::now();
    let (_server, _pipe) = serve(&store, ended(receiver.target("hook")));
    let received = receiver.wait_for(1).await;
    assert!(started.elapsed() >= Duration::from_millis(200), "{:?}", started.elapsed());
    assert_eq!(received[0].header("webhook-id"), leased[0].id);
    // The lost sender reports late: the delivery is gone.
    store.failed(&leased[0].id, 1, Some(Duration::ZERO), "late").await.unwrap();
    until_delivered(&store, "hook").await;
    assert_eq!(receiver.received().len(), 1);
}

#[tokio::test]
async fn message_of_stopped_server_is_sent_by_the_next() {
    let store = Arc::new(MemoryStore::new());
    let receiver = Receiver::start([Reply::Status(500)]).await;
    {
        let (server, mut pipe) = serve(&store, ended(receiver.target("hook")));
        call(&mut pipe, "deploy").await;
        failing(&store, 1).await;
        server.drain(Duration::from_secs(1)).await;
    }
    let id = store.failing(1).await.unwrap().remove(0).id;
    assert!(store.send_again(&id).await.unwrap());
    let (_server, _pipe) = serve(&store, ended(receiver.target("hook")));
    assert_eq!(receiver.wait_for(2).await[1].header("webhook-id"), id);
    until_delivered(&store, "hook").await;
}

#[tokio::test]
async fn drain_waits_for_the_message_that_is_being_sent() {
    let store = Arc::new(MemoryStore::new());
    let receiver = Receiver::start([Reply::Hang]).await;
    let (server, mut pipe) = serve(&store, ended(receiver.target("hook")));
    call(&mut pipe, "deploy").await;
    receiver.wait_for(1).await;
    let started = Instant::now();
    server.drain(Duration::from_millis(500)).await;
    assert!(started.elapsed() >= Duration::from_millis(500), "{:?}", started.elapsed());
    call_is_not_sent(&store, &receiver).await;
}

/// Checks that a drained server leases no further delivery.
async fn call_is_not_sent(store: &Arc<MemoryStore>, receiver: &Receiver) {
    ended_task(store, "t2").await;
    sleep(Duration::from_millis(500)).await;
    assert_eq!(receiver.received().len(), 1);
}

/// Stores an ended task whose end `hook` is notified of.
async fn ended_task(store: &Arc<MemoryStore>, id: &str) {
    let raw = |value| to_raw_value(&value).unwrap();
    let subscription = Subscription::new(TaskEvent::TaskEnded, "hook");
    let worker = (WorkerId::new("w"), Duration::from_secs(60));
    let principal = Principal::LOCAL.key();
    let task = NewTask::new(TaskId::new(id), principal, "deploy", "modern", raw(json!({})))
        .notify(vec![subscription])
        .worker(Some(worker));
    let CreateOutcome::Created { lease: Some(lease), .. } = store.create(task).await.unwrap()
    else {
        panic!("the task is not created with a lease")
    };
    let outcome = TaskOutcome::Result(raw(json!({"content": []})));
    let then = Transition::End { outcome, retention: Duration::from_secs(600) };
    store.commit(&lease, &Changes::default(), &then).await.unwrap();
}
