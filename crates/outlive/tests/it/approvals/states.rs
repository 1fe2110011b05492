//! Every state of an approval, for a client with tasks and for one that can only call again.

use std::time::Duration;

use outlive::{
    people::{Answer, Channel, People, PeopleConfig, Visitor},
    server::{
        Durable, Principal, Result, State, Tool,
        tasks::{OnCrash, TaskPolicy},
    },
    store::{DecisionOutcome, DecisionStore, Phase, TaskStore},
};
use serde_json::json;

use super::world::{
    HOUR, Runs, World, approval_of, by_ada, call, get, id_of, legacy, modern, settle, start, tool,
    two_of_three, with_tasks,
};
use crate::support::pipe::{raw, result, text};

const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test(start_paused = true)]
async fn gated_task_is_parked_without_worker() {
    let world = World::default();
    let server = world.server(two_of_three());
    let mut pipe = modern(&server);
    let task = start(&mut pipe, "1").await;
    let record = world.store.get("name:ann", &id_of(&task)).await.unwrap().unwrap();
    assert_eq!(record.phase, Phase::Parked);
    let item = world.only().await;
    assert_eq!((item.name.as_str(), item.person.as_deref()), ("#approval", Some("ann")));
    assert_eq!(item.binding.as_ref().map(|binding| binding.count), Some(2));
    assert_eq!(world.runs.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn call_runs_after_enough_different_people_approve() {
    let world = World::default();
    let server = world.server(two_of_three());
    let mut pipe = modern(&server);
    let task = start(&mut pipe, "1").await;
    let item = world.only().await;
    let counted = DecisionOutcome::Counted { approvals: 1, needed: 2 };
    assert_eq!(world.vote(&item, "ada", true).await, counted);
    assert_eq!(world.vote(&item, "ada", true).await, DecisionOutcome::AlreadyVoted);
    for stranger in ["ann", "eve"] {
        assert_eq!(world.vote(&item, stranger, true).await, DecisionOutcome::Unknown, "{stranger}");
    }
    assert_eq!(
        (world.runs.count(), &get(&mut pipe, &task).await["status"]),
        (0, &json!("working"))
    );
    assert_eq!(world.vote(&item, "ben", true).await, DecisionOutcome::Settled);
    let done = get(&mut pipe, &task).await;
    assert_eq!(
        (&done["status"], text(&done["result"])),
        (&json!("completed"), "deployed 1 to prod")
    );
    assert_eq!(world.vote(&item, "cid", false).await, DecisionOutcome::AlreadySettled);
    assert_eq!(world.runs.all(), ["1 prod"]);
}

#[tokio::test(start_paused = true)]
async fn first_denial_ends_the_call_and_stands() {
    let world = World::default();
    let server = world.server(two_of_three());
    let mut pipe = modern(&server);
    let task = start(&mut pipe, "1").await;
    let item = world.only().await;
    world.vote(&item, "ada", true).await;
    assert_eq!(world.vote(&item, "ben", false).await, DecisionOutcome::Settled);
    let denied = get(&mut pipe, &task).await["result"].clone();
    let says =
        "Denied: \"not before the freeze is over\". Nothing was run. Do not repeat it; these";
    assert!(text(&denied).starts_with(says), "{denied}");
    assert_eq!((approval_of(&denied), &denied["isError"]), ("denied", &json!(true)));
    // Every client of the person gets the same reply, without a new request.
    let again = with_tasks(&mut pipe, "tools/call", call("1")).await;
    assert_eq!((approval_of(&again), text(&again)), ("denied", text(&denied)));
    let editor = legacy(&server).await.result("tools/call", call("1")).await;
    assert_eq!(text(&editor), text(&denied));
    assert!(world.open().await.is_empty());
    // Other arguments are another call.
    start(&mut pipe, "2").await;
    world.advance(10 * MINUTE).await;
    start(&mut pipe, "1").await;
    assert_eq!((world.open().await.len(), world.runs.count()), (2, 0));
}

#[tokio::test(start_paused = true)]
async fn undecided_call_expires_and_counts_no_later_vote() {
    let world = World::default();
    let server = world.server(by_ada().decision_timeout(8 * HOUR));
    let mut pipe = modern(&server);
    let task = start(&mut pipe, "1").await;
    let item = world.only().await;
    world.advance(8 * HOUR - MINUTE).await;
    assert_eq!(get(&mut pipe, &task).await["status"], "working");
    world.advance(MINUTE).await;
    let done = get(&mut pipe, &task).await;
    assert_eq!(text(&done["result"]), "No decision within 8 h. Nothing was run.");
    assert_eq!(approval_of(&done["result"]), "expired");
    let late = world.vote(&item, "ada", true).await;
    assert!(matches!(late, DecisionOutcome::Withdrawn | DecisionOutcome::Expired), "{late:?}");
    assert_eq!(world.runs.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn cancellation_withdraws_the_request() {
    let world = World::default();
    let server = world.server(by_ada());
    let mut pipe = modern(&server);
    let task = start(&mut pipe, "1").await;
    let item = world.only().await;
    with_tasks(&mut pipe, "tasks/cancel", json!({"taskId": task["taskId"]})).await;
    assert_eq!(get(&mut pipe, &task).await["status"], "cancelled");
    assert_eq!(world.vote(&item, "ada", true).await, DecisionOutcome::Withdrawn);
    assert!(world.open().await.is_empty());
    assert_eq!(world.runs.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn waiting_call_learns_that_its_request_was_withdrawn() {
    let world = World::default();
    let mut pipe = legacy(&world.server(by_ada())).await;
    let id = pipe.send("tools/call", call("1")).await;
    settle().await;
    let item = world.only().await;
    world.store.cancel("name:ann", &item.task, true, HOUR).await.unwrap();
    let done = pipe.answer(id).await["result"].clone();
    assert_eq!(text(&done), "Withdrawn before a decision. Nothing was run.");
    assert_eq!(approval_of(&done), "withdrawn");
}

#[tokio::test(start_paused = true)]
async fn approved_call_of_client_with_pending_result_runs_at_once() {
    let world = World::default();
    let mut pipe = legacy(&world.server(by_ada())).await;
    let pending = pipe.call("deploy", json!({"version": "1"})).await;
    assert_eq!(approval_of(&pending), "pending", "{pending}");
    settle().await;
    world.vote(&world.only().await, "ada", true).await;
    assert_eq!(world.runs.all(), ["1 prod"]);
    let task = &pending["structuredContent"]["task"]["id"];
    let done = pipe.call("task_result", json!({"task": task})).await;
    assert_eq!(text(&done), "deployed 1 to prod");
}

#[tokio::test(start_paused = true)]
async fn approved_call_of_absent_caller_runs_when_it_calls_again() {
    let world = World::default();
    let server = world.server_without_hosts(by_ada());
    let mut pipe = legacy(&server).await;
    let id = pipe.send("tools/call", call("1")).await;
    tokio::time::sleep(Duration::from_secs(55)).await;
    let pending = pipe.answer(id).await["result"].clone();
    assert!(text(&pending).contains("Call it again with the same arguments"), "{pending}");
    world.vote(&world.only().await, "ada", true).await;
    assert_eq!(world.runs.count(), 0, "its caller may have stopped on purpose");
    let done = pipe.result("tools/call", call("1")).await;
    assert_eq!((text(&done), world.runs.count()), ("deployed 1 to prod", 1));
    // The result was delivered, so the same call is a new one with a new approval.
    pipe.send("tools/call", call("1")).await;
    settle().await;
    world.only().await;
}

#[tokio::test(start_paused = true)]
async fn approved_call_lapses_if_its_caller_does_not_return() {
    let world = World::default();
    let mut pipe = legacy(&world.server_without_hosts(by_ada())).await;
    let id = pipe.send("tools/call", call("1")).await;
    tokio::time::sleep(Duration::from_secs(55)).await;
    assert_eq!(approval_of(&pipe.answer(id).await["result"]), "pending");
    world.vote(&world.only().await, "ada", true).await;
    // The run waits in memory for ten seconds, then it is parked.
    tokio::time::sleep(Duration::from_secs(15)).await;
    world.advance(11 * MINUTE).await;
    let lapsed = pipe.result("tools/call", call("1")).await;
    assert_eq!(text(&lapsed), "Approved, but not called again within 10 min. Nothing was run.");
    assert_eq!((approval_of(&lapsed), &lapsed["isError"]), ("lapsed", &json!(true)));
    assert_eq!(world.runs.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn call_whose_caller_left_before_any_reply_waits_for_its_return() {
    let world = World::default();
    let server = world.server(by_ada());
    let mut pipe = legacy(&server).await;
    let id = pipe.send("tools/call", call("1")).await;
    settle().await;
    let reason = "McpError: MCP error -32001: Request timed out";
    pipe.notify("notifications/cancelled", json!({"requestId": id, "reason": reason})).await;
    settle().await;
    world.vote(&world.only().await, "ada", true).await;
    assert_eq!(world.runs.count(), 0);
    let done = pipe.result("tools/call", call("1")).await;
    assert_eq!((text(&done), world.runs.count()), ("deployed 1 to prod", 1));
}

#[tokio::test(start_paused = true)]
async fn waiting_call_returns_the_result_of_its_approved_run() {
    let world = World::default();
    let mut pipe = legacy(&world.server(by_ada())).await;
    let id = pipe.send("tools/call", call("1")).await;
    settle().await;
    world.vote(&world.only().await, "ada", true).await;
    assert_eq!(text(&pipe.answer(id).await["result"]), "deployed 1 to prod");
    assert_eq!(world.runs.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn approval_of_earlier_definition_is_requested_again() {
    let world = World::default();
    let server = world.server(by_ada());
    let mut pipe = modern(&server);
    let task = start(&mut pipe, "1").await;
    let first = world.only().await;
    let changed = tool(by_ada()).task(TaskPolicy::auto()).definition("./deploy --force");
    server.add_tool(changed).unwrap();
    assert_eq!(world.vote(&first, "ada", true).await, DecisionOutcome::Settled);
    assert_eq!(world.runs.count(), 0);
    assert_eq!(get(&mut pipe, &task).await["statusMessage"], "waits for approval");
    let second = world.only().await;
    assert_eq!((second.name.as_str(), second.approvals), ("#approval#2", 0));
    let definition = |item: &outlive::store::InboxItem| item.binding.clone().unwrap().definition;
    assert_ne!(definition(&first), definition(&second));
    assert_eq!(world.vote(&first, "ada", true).await, DecisionOutcome::AlreadySettled);
    assert_eq!(world.vote(&second, "ada", true).await, DecisionOutcome::Settled);
    assert_eq!(get(&mut pipe, &task).await["status"], "completed");
    assert_eq!(world.runs.all(), ["1 prod"]);
}

#[tokio::test(start_paused = true)]
async fn approval_without_sight_of_the_definition_is_requested_again() {
    let world = World::default();
    let server = world.server(two_of_three());
    let mut pipe = modern(&server);
    let task = start(&mut pipe, "1").await;
    let first = world.only().await;
    world.approve_other_definition(&first, "ada").await;
    assert_eq!(world.vote(&first, "ben", true).await, DecisionOutcome::Settled);
    let second = world.only().await;
    assert_eq!((second.name.as_str(), world.runs.count()), ("#approval#2", 0));
    for person in ["ada", "ben"] {
        world.vote(&second, person, true).await;
    }
    assert_eq!(get(&mut pipe, &task).await["status"], "completed");
    assert_eq!(world.runs.all(), ["1 prod"]);
}

#[tokio::test(start_paused = true)]
async fn view_of_a_server_with_another_definition_leads_to_a_vote_that_says_so() {
    let world = World::default();
    let server = world.server(two_of_three());
    start(&mut modern(&server), "1").await;
    let item = world.only().await;
    let changed = tool(two_of_three()).task(TaskPolicy::auto()).definition("./deploy --force");
    let other = world.server_of(changed);
    for (server, person, has_definition) in [(&server, "ada", true), (&other, "ben", false)] {
        let (people, visitor) = (People::new(server).unwrap(), visitor(person));
        let view = people.input_request(&visitor, &item.task, &item.name).await.unwrap();
        assert_eq!(view.has_definition, has_definition, "{person}");
        let answer = Answer { digest: view.digest, accepts: true, ..Answer::default() };
        people.answer(&visitor, &item.task, &item.name, answer).await.unwrap();
        let detail = world.store.input_request(&item.task, &item.name).await.unwrap().unwrap();
        let vote = detail.votes.iter().find(|vote| vote.person == person).unwrap();
        assert_eq!(vote.saw_definition, has_definition, "{person}");
    }
}

/// Returns a person in a browser.
fn visitor(person: &str) -> Visitor {
    let principal = Principal::named(person).deciding();
    Visitor::new(&principal, &PeopleConfig::default(), Channel::Console)
}

#[tokio::test(start_paused = true)]
async fn reissued_request_survives_the_end_of_its_worker() {
    let world = World::default();
    let server = world.server(by_ada());
    let mut pipe = modern(&server);
    let task = start(&mut pipe, "1").await;
    let changed = || tool(by_ada()).task(TaskPolicy::auto()).definition("./deploy --force");
    server.add_tool(changed()).unwrap();
    world.vote(&world.only().await, "ada", true).await;
    tokio::time::sleep(Duration::from_secs(15)).await;
    server.drain(Duration::from_secs(1)).await;
    let other = world.server_of(changed());
    let mut pipe = modern(&other);
    world.vote(&world.only().await, "ada", true).await;
    assert_eq!(get(&mut pipe, &task).await["status"], "completed");
    assert_eq!(world.runs.all(), ["1 prod"]);
}

#[tokio::test(start_paused = true)]
async fn tool_changed_while_run_waits_in_memory_is_approved_again() {
    let world = World::default();
    // The clock of the store is ahead of the engine's by more than the time for a decision, so a
    // request that is issued again makes its task due at once, and a run waits in memory.
    world.advance(HOUR + MINUTE).await;
    let rule = || two_of_three().decision_timeout(HOUR);
    let server = world.server(rule());
    let mut pipe = modern(&server);
    let task = start(&mut pipe, "1").await;
    let changed = |definition: &str| tool(rule()).task(TaskPolicy::auto()).definition(definition);
    server.add_tool(changed("./deploy --force")).unwrap();
    world.vote(&world.only().await, "ada", true).await;
    world.vote(&world.only().await, "ben", true).await;
    world.vote(&world.only().await, "ada", true).await;
    server.add_tool(changed("./deploy --force --all")).unwrap();
    world.vote(&world.only().await, "ben", true).await;
    assert_eq!(world.runs.count(), 0, "the second change is not approved");
    assert_eq!(world.only().await.approvals, 0);
    for person in ["ada", "ben"] {
        world.vote(&world.only().await, person, true).await;
    }
    assert_eq!(get(&mut pipe, &task).await["status"], "completed");
    assert_eq!(world.runs.all(), ["1 prod"]);
}

#[tokio::test(start_paused = true)]
async fn unstarted_task_of_tool_that_becomes_gated_is_gated() {
    let world = World::default();
    let always = || tool_without_rule().task(TaskPolicy::Always);
    let idle = world
        .builder(|config| config.engine(|engine| engine.max_running = 0))
        .tool(always())
        .build()
        .unwrap();
    let task = start(&mut modern(&idle), "1").await;
    idle.drain(Duration::from_secs(1)).await;
    let gated = world.server_of(always().approve(by_ada()));
    let mut pipe = modern(&gated);
    // The engine starts with the first use of the store.
    get(&mut pipe, &task).await;
    settle().await;
    assert_eq!(world.runs.count(), 0);
    let item = world.only().await;
    assert_eq!(item.name, "#approval");
    world.vote(&item, "ada", true).await;
    assert_eq!(get(&mut pipe, &task).await["status"], "completed");
    assert_eq!(world.runs.count(), 1);
}

fn tool_without_rule() -> Tool {
    async fn deploy(runs: State<Runs>) -> &'static str {
        runs.add("run");
        "deployed"
    }
    Tool::new("deploy", deploy).input_schema(raw(&json!({"type": "object"})))
}

#[tokio::test(start_paused = true)]
async fn approved_call_that_crashed_runs_again_only_if_its_tool_allows() {
    async fn hangs(runs: State<Runs>) -> String {
        runs.add("run");
        if runs.count() == 1 {
            std::future::pending::<()>().await;
        }
        "second run".to_owned()
    }
    for (on_crash, count) in [(OnCrash::Fail, 1), (OnCrash::Rerun, 2)] {
        let world = World::default();
        let hanging = || {
            let tool = Tool::new("deploy", hangs).task(TaskPolicy::auto()).on_crash(on_crash);
            tool.approve(by_ada()).input_schema(raw(&json!({"type": "object"})))
        };
        let first = world.server_of(hanging());
        let task = start(&mut modern(&first), "1").await;
        world.vote(&world.only().await, "ada", true).await;
        assert_eq!(world.runs.count(), 1);
        // The first server does not renew its lease on the clock of the store.
        world.store.advance_clock(Duration::from_secs(300));
        drop(first);
        let second = world.server_of(hanging());
        let mut pipe = modern(&second);
        get(&mut pipe, &task).await;
        world.advance(MINUTE).await;
        let done = get(&mut pipe, &task).await;
        assert_eq!(world.runs.count(), count, "{done}");
        assert!(world.open().await.is_empty(), "the approval still covers the run");
    }
}

#[tokio::test(start_paused = true)]
async fn started_call_of_tool_that_changed_runs_again_only_after_a_record() {
    async fn hangs(cx: Durable, records: bool, runs: State<Runs>) -> Result<String> {
        if records {
            cx.step("record", async || Ok(())).await?;
        }
        runs.add(if cx.is_approval_stale() { "stale" } else { "approved" });
        if runs.count() == 1 {
            std::future::pending::<()>().await;
        }
        Ok("second run".to_owned())
    }
    for (records, executed) in [(false, &["approved"][..]), (true, &["approved", "stale"])] {
        let world = World::default();
        let hanging = |definition: &str| {
            let tool =
                Tool::new("deploy", move |cx: Durable, runs: State<Runs>| hangs(cx, records, runs));
            let tool = tool.task(TaskPolicy::auto()).approve(by_ada()).definition(definition);
            tool.input_schema(raw(&json!({"type": "object"})))
        };
        let first = world.server_of(hanging("./deploy"));
        let task = start(&mut modern(&first), "1").await;
        world.vote(&world.only().await, "ada", true).await;
        assert_eq!(world.runs.count(), 1);
        // The first server does not renew its lease on the clock of the store.
        world.store.advance_clock(Duration::from_secs(300));
        drop(first);
        let second = world.server_of(hanging("./deploy --force"));
        let mut pipe = modern(&second);
        get(&mut pipe, &task).await;
        world.advance(MINUTE).await;
        let done = get(&mut pipe, &task).await;
        assert_eq!(world.runs.all(), executed, "{done}");
        let says_so = done.to_string().contains("was changed after people approved this call");
        assert_eq!(says_so, !records, "{done}");
    }
}

#[tokio::test(start_paused = true)]
async fn waiting_call_occupies_no_permit() {
    let world = World::default();
    let limited = tool(by_ada().when_argument("env", ["prod"])).max_concurrent(1);
    let server = world.server_of(limited.task(TaskPolicy::auto()));
    let mut pipe = modern(&server);
    start(&mut pipe, "1").await;
    let test = json!({"name": "deploy", "arguments": {"version": "1", "env": "test"}});
    let done = result(&pipe.modern("tools/call", test).await);
    assert_eq!(text(&done), "deployed 1 to test");
}
