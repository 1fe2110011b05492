//! Crashes while a task runs.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use outlive::{
    operator::Operator,
    server::{
        Durable, Result, State, Tool,
        tasks::{TaskConfig, TaskPolicy},
    },
    store::{Phase, RetryOutcome, TaskId, WorkQueue, WorkerId},
};
use serde_json::json;

use super::super::{
    cleanup::events,
    stage::{LEASE, MAX_TTL, Process, Stage, TTL, acknowledged, answer, parked, send, until_asked},
    world::{Counts, get, modern, start, until, until_kept},
};
use crate::support::{
    fail_points::{FailPoints, Op, after, before},
    pipe::{Pipe, result, text},
};

/// Starts a task and crashes its process at `place`. Afterwards the gate is open.
fn run_and_die(stage: &Stage, tool: &str, place: crate::support::fail_points::Point) -> String {
    let first = Process::start();
    let id = first.run(async {
        let (server, points) = stage.replica();
        let lost = points.hold(place);
        let id = stage.run(&mut Pipe::open(&server), tool, place.op).await;
        lost.arrived().await;
        id
    });
    first.kill(&stage.store);
    id
}

// K-06
#[test]
fn task_of_crashed_worker_is_reclaimed_when_lease_expires() {
    let stage = Stage::new();
    let first = Process::start();
    let id = first.run(async {
        let id = start(&mut Pipe::open(&stage.replica().0), "gated", json!({})).await;
        stage.gate.arrived().await;
        id
    });
    drop(first);
    Process::start().run(async {
        let mut pipe = Pipe::open(&stage.replica().0);
        for _ in 0..20 {
            assert_eq!(get(&mut pipe, &id).await["status"], "working");
            parked().await;
        }
        stage.gate.abandoned().await;
        stage.store.advance_clock(LEASE);
        stage.gate.arrived().await;
        assert_eq!(get(&mut pipe, &id).await["status"], "working");
        stage.gate.open(1);
        until(&mut pipe, &id, "completed").await;
    });
}

// K-13
#[test]
fn step_with_lost_record_reruns_with_same_idempotency_key() {
    for (place, times) in [(before(Op::Record), 2), (after(Op::Record), 1)] {
        let stage = Stage::new();
        let id = run_and_die(&stage, "order", place);
        Process::start().run(async {
            let mut pipe = Pipe::open(&stage.replica().0);
            until_asked(&mut pipe, &id, &["sure"]).await;
        });
        assert_eq!(stage.effects.count(), (1, times), "{place:?}: one key, so one effect");
    }
}

// K-13
#[test]
fn step_once_interrupted_by_crash_reports_unknown_outcome() {
    // The first entry marks the start of the step, the second records its result.
    for (place, done, said) in [
        (before(Op::Record), 1, "receipt 7"),
        (after(Op::Record), 0, "unknown"),
        (before(Op::Record).nth(2), 1, "unknown"),
        (after(Op::Record).nth(2), 1, "receipt 7"),
    ] {
        let stage = Stage::new();
        let id = run_and_die(&stage, "pay", place);
        Process::start().run(async {
            let mut pipe = Pipe::open(&stage.replica().0);
            let ended = until(&mut pipe, &id, "completed").await;
            assert!(text(&ended["result"]).starts_with(said), "{place:?}: {ended}");
        });
        assert_eq!(stage.effects.count(), (done as usize, done), "{place:?}");
    }
}

// K-15
#[test]
fn cancelled_task_of_crashed_worker_ends_without_rerun() {
    let stage = Stage::new();
    let first = Process::start();
    let id = first.run(async {
        let (server, points) = stage.replica();
        let mut pipe = Pipe::open(&server);
        let id = start(&mut pipe, "gated", json!({})).await;
        stage.gate.arrived().await;
        // The process crashes before it reads the cancellation.
        points.hold(before(Op::Heard));
        acknowledged(&modern(&mut pipe, "tasks/cancel", json!({"taskId": id})).await);
        id
    });
    first.kill(&stage.store);
    Process::start().run(async {
        let mut pipe = Pipe::open(&stage.replica().0);
        until(&mut pipe, &id, "cancelled").await;
        stage.gate.abandoned().await;
        parked().await;
        stage.gate.open(1);
        assert_eq!(stage.gate.count_abandoned(), 0, "no run reached the gate again");
    });
}

// K-20
#[test]
fn stored_segments_keep_numbers_after_crash() {
    for (place, ordinals) in [(before(Op::Emit), vec![]), (after(Op::Emit), vec![0, 1])] {
        let stage = Stage::new();
        let id = run_and_die(&stage, "emits", place);
        let stored = Process::start().run(async {
            // The segments that the next process finds.
            let worker = WorkerId::new("test");
            let claimed =
                stage.store.claim(&worker, LEASE, &1_usize.into()).await.unwrap().remove(0);
            stage.store.release(&worker).await.unwrap();
            let segments = claimed.journal.segments;
            segments.iter().map(|segment| segment.ordinal).collect::<Vec<_>>()
        });
        assert_eq!(stored, ordinals, "{place:?}");
        Process::start().run(async {
            let mut pipe = Pipe::open(&stage.replica().0);
            stage.gate.open(10);
            let done = until(&mut pipe, &id, "completed").await;
            let content = done["result"]["content"].as_array().unwrap();
            let texts: Vec<_> = content.iter().map(|block| block["text"].clone()).collect();
            assert_eq!(texts, ["one", "two", "three", "end"], "{place:?}");
        });
    }
}

/// Other revisions of `deploy`: one renames a step, one changes the type of an entry.
async fn renamed(cx: Durable, counts: State<Counts>) -> Result<String> {
    let image: String = cx
        .step("compile", async || {
            counts.builds.fetch_add(1, Ordering::Relaxed);
            Ok("shop:2".to_owned())
        })
        .await?;
    Ok(format!("{image} without an input request"))
}

async fn retyped(cx: Durable) -> Result<String> {
    let image: u32 = cx.step("build", async || Ok(2)).await?;
    Ok(format!("{image}"))
}

// K-26
#[test]
fn changed_handler_replays_journal_of_old_handler() {
    let asking = || {
        let stage = Stage::new();
        let id = run_and_die(&stage, "deploy", after(Op::Ask));
        (stage, id)
    };
    let resume = |stage: &Stage, tool: Tool| {
        let points = FailPoints::over(Arc::clone(&stage.store) as _);
        let server = stage.builder(&points, |config| config).build().unwrap();
        server.remove_tool("deploy");
        server.add_tool(tool.task(TaskPolicy::Always)).unwrap();
        Pipe::open(&server)
    };
    let (stage, id) = asking();
    let done = Process::start().run(async {
        let mut pipe = resume(&stage, Tool::new("deploy", renamed));
        until(&mut pipe, &id, "completed").await
    });
    assert_eq!(text(&done["result"]), "shop:2 without an input request", "the new step runs");
    assert!(done.get("inputRequests").is_none());
    // An incompatible entry is not executed again, and the error names its key.
    let (stage, id) = asking();
    Process::start().run(async {
        let mut pipe = resume(&stage, Tool::new("deploy", retyped));
        let why = until_kept(&mut pipe, &id).await;
        assert!(why.contains("`build`"), "{why}");
    });
}

// K-27
#[test]
fn task_over_crash_limit_is_quarantined_then_fails() {
    let stage = Stage::new();
    let id = lose_workers(&stage);
    Process::start().run(async {
        let mut pipe = Pipe::open(&stage.replica().0);
        let why = until_kept(&mut pipe, &id).await;
        assert!(why.contains("crashed 5 times"), "{why}");
        assert_eq!(events(&stage.store, &id).await.last().unwrap(), "quarantined");
        stage.store.advance_clock(Duration::from_secs(8 * 24 * 3600));
        let failed = until(&mut pipe, &id, "failed").await;
        assert_eq!(failed["error"]["code"], -32603);
        let why = failed["error"]["message"].as_str().unwrap();
        assert!(why.contains("crashed 5 times"), "{why}");
    });
}

// K-27
#[test]
fn task_over_crash_limit_without_quarantine_fails_immediately() {
    let stage = Stage::new();
    let id = lose_workers(&stage);
    Process::start().run(async {
        let points = FailPoints::over(Arc::clone(&stage.store) as _);
        let at_once =
            |config: TaskConfig| config.engine(|engine| engine.quarantine_ttl = Duration::ZERO);
        let server = stage.builder(&points, at_once).build().unwrap();
        let failed = until(&mut Pipe::open(&server), &id, "failed").await;
        assert_eq!(failed["error"]["code"], -32603);
    });
}

#[test]
fn quarantined_task_resumes_after_operator_retry() {
    let stage = Stage::new();
    let id = lose_workers(&stage);
    Process::start().run(async {
        let mut pipe = Pipe::open(&stage.replica().0);
        until_kept(&mut pipe, &id).await;
        let operator = Operator::new(Arc::clone(&stage.store) as _);
        let task = TaskId::new(id.clone());
        let retried = operator.retry(&task).await.unwrap();
        assert!(matches!(retried, Some(RetryOutcome::Queued(_))), "{retried:?}");
        stage.gate.arrived().await;
        stage.gate.open(1);
        until(&mut pipe, &id, "completed").await;
        let again = operator.retry(&task).await.unwrap();
        assert_eq!(
            again,
            Some(RetryOutcome::NotQuarantined(Phase::Ended)),
            "the result was delivered"
        );
    });
}

/// Starts a task and crashes its workers until the crash limit.
fn lose_workers(stage: &Stage) -> String {
    let id = run_and_die(stage, "gated", after(Op::Claim));
    for _ in 2..=5 {
        let next = Process::start();
        next.run(async {
            let mut pipe = Pipe::open(&stage.replica().0);
            assert_eq!(get(&mut pipe, &id).await["status"], "working");
            stage.gate.arrived().await;
        });
        next.kill(&stage.store);
    }
    id
}

// K-27
#[test]
fn task_crashing_twice_in_a_row_waits_for_backoff() {
    const HOUR: Duration = Duration::from_secs(3600);
    let stage = Stage::new();
    let replica = || {
        let points = FailPoints::over(Arc::clone(&stage.store) as _);
        let server = stage.builder(&points, |config| {
            config.ttl(MAX_TTL).engine(|engine| {
                (engine.backoff, engine.max_backoff) = (HOUR * 2, HOUR * 2);
            })
        });
        server.build().unwrap()
    };
    let first = Process::start();
    let id = first.run(async {
        let id = start(&mut Pipe::open(&replica()), "gated", json!({})).await;
        stage.gate.arrived().await;
        id
    });
    first.kill(&stage.store);
    // After the first crash there is no backoff.
    let second = Process::start();
    second.run(async {
        get(&mut Pipe::open(&replica()), &id).await;
        stage.gate.arrived().await;
    });
    second.kill(&stage.store);
    // Then the backoff is between one and two hours.
    Process::start().run(async {
        let server = replica();
        let mut pipe = Pipe::open(&server);
        get(&mut pipe, &id).await;
        parked().await;
        assert_eq!(stage.tasks().await[0].phase, Phase::Parked);
        assert_eq!(get(&mut pipe, &id).await["status"], "working");
        // The test has advanced the store's clock.
        let due = stage.store.next_due(&[]).await.unwrap().unwrap() + LEASE * 4;
        assert!(due + LEASE >= HOUR && due <= HOUR * 2, "{due:?}");
        // A drain and a new server do not restart the backoff.
        server.drain(Duration::ZERO).await;
        stage.store.advance_clock(HOUR * 2);
        get(&mut Pipe::open(&replica()), &id).await;
        stage.gate.arrived().await;
    });
}

// K-27
#[test]
fn task_making_progress_between_crashes_is_not_quarantined() {
    let stage = Stage::new();
    let tool = || {
        let work = async |cx: Durable| -> Result<String> {
            for part in 0..8 {
                cx.step(("part", part), async || Ok(part)).await?;
            }
            Ok("done".to_owned())
        };
        Tool::new("parts", work).task(TaskPolicy::Always)
    };
    let replica = || {
        let points = FailPoints::over(Arc::clone(&stage.store) as _);
        (stage.builder(&points, |config| config).tool(tool()).build().unwrap(), points)
    };
    let mut id = None;
    for _ in 0..8 {
        let process = Process::start();
        id = Some(process.run(async {
            let (server, points) = replica();
            let lost = points.hold(after(Op::Record));
            let mut pipe = Pipe::open(&server);
            let id = match &id {
                Some(id) => String::clone(id),
                None => start(&mut pipe, "parts", json!({})).await,
            };
            get(&mut pipe, &id).await;
            lost.arrived().await;
            id
        }));
        process.kill(&stage.store);
    }
    Process::start().run(async {
        let mut pipe = Pipe::open(&replica().0);
        until(&mut pipe, &id.unwrap(), "completed").await;
    });
}

// K-28
#[tokio::test(start_paused = true)]
async fn task_ttl_and_leases_follow_store_clock() {
    let stage = Stage::new();
    let (server, _) = stage.replica();
    let mut pipe = Pipe::open(&server);
    let id = start(&mut pipe, "gated", json!({})).await;
    stage.gate.arrived().await;
    // The worker's clock runs ahead by hours; the store's clock does not.
    let (other, _) = stage.replica();
    let mut look = Pipe::open(&other);
    tokio::time::sleep(TTL * 2).await;
    assert_eq!(get(&mut look, &id).await["status"], "working");
    assert_eq!(stage.gate.count_abandoned(), 0, "the worker still has the task");
    stage.store.advance_clock(TTL);
    until(&mut look, &id, "failed").await;
    let view = stage.tasks().await.remove(0);
    assert_eq!(view.phase, Phase::Ended);
}

// K-24, K-06
#[tokio::test(start_paused = true)]
async fn task_claimed_despite_store_error_is_claimed_again() {
    let stage = Stage::new();
    let (server, points) = stage.replica();
    let mut pipe = Pipe::open(&server);
    // This task makes the worker send heartbeats.
    start(&mut pipe, "gated", json!({})).await;
    stage.gate.arrived().await;
    points.fail(after(Op::Claim));
    let id = stage.queue("deploy").await;
    parked().await;
    assert_eq!(stage.counts.runs.load(Ordering::Relaxed), 0, "the claim was not reported");
    tokio::time::sleep(LEASE).await;
    until_asked(&mut pipe, &id, &["approve"]).await;
    answer(&mut pipe, &id, &[("approve", true)]).await;
    until(&mut pipe, &id, "completed").await;
}

// K-24
#[tokio::test(start_paused = true)]
async fn task_claimed_by_slow_store_is_started_not_released() {
    // The worker renews a lease before it knows the claim: once, because claiming is slow, and many
    // times, because it is very slow.
    for late in [LEASE / 2, LEASE * 3] {
        let stage = Stage::new();
        let (server, points) = stage.replica();
        let mut pipe = Pipe::open(&server);
        // This task makes the worker send heartbeats.
        start(&mut pipe, "gated", json!({})).await;
        stage.gate.arrived().await;
        let claiming = points.hold(after(Op::Claim));
        // This tool is not rerun: if the lease were lost, the task would fail.
        let id = stage.queue("fail").await;
        claiming.arrived().await;
        tokio::time::sleep(late).await;
        claiming.open(1);
        assert_eq!(text(&until(&mut pipe, &id, "completed").await["result"]), "quota");
    }
}

// K-24
#[tokio::test(start_paused = true)]
async fn task_created_by_slow_store_is_not_released() {
    // A task that starts at creation, and a promoted call that already runs.
    for (tool, arguments, answer) in
        [("fail", json!({}), "quota"), ("nap", json!({"ms": 500}), "slept 500 ms")]
    {
        let stage = Stage::new();
        let (server, points) = stage.replica();
        let mut pipe = Pipe::open(&server);
        start(&mut pipe, "gated", json!({})).await;
        stage.gate.arrived().await;
        let making = points.hold(after(Op::Create));
        let call =
            send(&mut pipe, "tools/call", json!({"name": tool, "arguments": arguments})).await;
        making.arrived().await;
        tokio::time::sleep(LEASE * 3).await;
        making.open(1);
        let task = result(&pipe.answer(call).await);
        let id = task["taskId"].as_str().unwrap();
        assert_eq!(text(&until(&mut pipe, id, "completed").await["result"]), answer, "{tool}");
    }
}
