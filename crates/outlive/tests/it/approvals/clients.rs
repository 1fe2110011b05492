//! The reply to each kind of client whose call needs approval.

use std::time::Duration;

use outlive::{
    server::{Principal, approve::Approve, hosts::Repeat, tasks::TaskPolicy},
    store::DecisionOutcome,
};
use serde_json::json;

use super::world::{
    World, approval_of, by_ada, call, get, legacy, modern, settle, start, tool, with_tasks,
};
use crate::support::pipe::{Pipe, result, text};

/// Waits longer than the slice of a client on a server without hosts.
async fn slice() {
    tokio::time::sleep(Duration::from_secs(55)).await;
}

#[tokio::test(start_paused = true)]
async fn client_with_tasks_gets_the_task_at_once() {
    let world = World::default();
    let server = world.server(by_ada());
    let mut pipe = modern(&server);
    let start_time = tokio::time::Instant::now();
    let task = start(&mut pipe, "1").await;
    assert!(start_time.elapsed() < Duration::from_secs(1));
    for task in [&task, &get(&mut pipe, &task).await] {
        assert_eq!(task["status"], "working");
        // No name of an approver.
        assert_eq!(task["statusMessage"], "waits for approval");
    }
}

#[tokio::test(start_paused = true)]
async fn client_that_requests_a_task_gets_it_at_once() {
    let world = World::default();
    let server = world.server(by_ada());
    let mut pipe = Pipe::open_as(&server, Principal::named("ann"));
    pipe.legacy_with("2025-11-25", json!({"tasks": {}})).await;
    let mut params = call("1");
    params["task"] = json!({});
    let created = pipe.result("tools/call", params).await;
    assert_eq!(created["task"]["status"], "working", "{created}");
    assert_eq!(created["task"]["statusMessage"], "waits for approval");
    world.vote(&world.only().await, "ada", true).await;
    let id = &created["task"]["taskId"];
    let done = pipe.result("tasks/result", json!({"taskId": id})).await;
    assert_eq!(text(&done), "deployed 1 to prod");
}

#[tokio::test(start_paused = true)]
async fn task_methods_cannot_decide_for_people() {
    let world = World::default();
    let mut pipe = modern(&world.server(by_ada()));
    let task = start(&mut pipe, "1").await;
    let responses = json!({"#approval": {"action": "accept", "content": {}}});
    let params = json!({"taskId": task["taskId"], "inputResponses": responses});
    with_tasks(&mut pipe, "tasks/update", params).await;
    settle().await;
    assert_eq!(get(&mut pipe, &task).await["status"], "working");
    assert_eq!((world.open().await.len(), world.runs.count()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn fallback_tools_cannot_decide_for_people() {
    let world = World::default();
    let mut pipe = legacy(&world.server(by_ada())).await;
    let pending = pipe.call("deploy", json!({"version": "1"})).await;
    let task = &pending["structuredContent"]["task"]["id"];
    let accept = json!({"task": task, "input_request": "#approval", "action": "accept"});
    let refused = pipe.call("task_answer", accept).await;
    assert!(text(&refused).starts_with("only the user can answer"), "{refused}");
    assert_eq!((world.open().await.len(), world.runs.count()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn client_without_tasks_waits_for_a_slice_and_gets_a_pending_result() {
    let world = World::default();
    let mut pipe = legacy(&world.server(by_ada())).await;
    let start_time = tokio::time::Instant::now();
    let pending = pipe.call("deploy", json!({"version": "1"})).await;
    assert!(start_time.elapsed() >= Duration::from_secs(4), "{:?}", start_time.elapsed());
    let task = &pending["structuredContent"]["task"];
    assert_eq!(
        (&task["status"], &task["message"]),
        (&json!("working"), &json!("waits for approval"))
    );
    assert!(text(&pending).starts_with("Not run yet: `deploy` waits for approval (requested "));
    assert!(text(&pending).contains("Call task_result with"), "{pending}");
    assert!(pending["isError"].is_null() && !text(&pending).contains("ada"), "{pending}");
    // The model waits with the fallback tool, and reads the same text.
    let polled = pipe.call("task_result", json!({"task": task["id"], "wait_seconds": 1})).await;
    assert_eq!(approval_of(&polled), "pending", "{polled}");
    let cancelled = pipe.call("task_cancel", json!({"task": task["id"]})).await;
    assert!(text(&cancelled).contains("is cancelled"), "{cancelled}");
    assert!(world.open().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn same_call_again_joins_its_undecided_run() {
    for repeat in [Repeat::Join, Repeat::New] {
        let world = World::default();
        let server = world.server_of(tool(by_ada()).task(TaskPolicy::auto()).repeat(repeat));
        let mut pipe = legacy(&server).await;
        let first = pipe.call("deploy", json!({"version": "1"})).await;
        let second = pipe.call("deploy", json!({"version": "1"})).await;
        let id = |pending: &serde_json::Value| pending["structuredContent"]["task"]["id"].clone();
        assert_eq!(id(&first), id(&second), "{repeat:?}");
        world.vote(&world.only().await, "ada", true).await;
        assert_eq!(world.runs.count(), 1);
        let third = pipe.send("tools/call", call("1")).await;
        settle().await;
        match repeat {
            // The undelivered result waits for the call.
            Repeat::Join => {
                let done = pipe.answer(third).await["result"].clone();
                assert_eq!(text(&done), "deployed 1 to prod");
                assert!(world.open().await.is_empty());
            }
            _ => assert_eq!(world.open().await.len(), 1, "a new call with a new approval"),
        }
        assert_eq!(world.runs.count(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn modern_client_without_tasks_follows_rounds() {
    let world = World::default();
    let mut pipe = modern(&world.server(by_ada()));
    let mut params = call("1");
    let round = result(&pipe.modern("tools/call", params.clone()).await);
    assert_eq!(round["resultType"], "input_required", "{round}");
    assert!(round.get("inputRequests").is_none_or(|asked| asked == &json!({})), "{round}");
    world.vote(&world.only().await, "ada", true).await;
    assert_eq!(world.runs.count(), 0, "the client is between two rounds");
    params["requestState"] = round["requestState"].clone();
    let done = result(&pipe.modern("tools/call", params).await);
    assert_eq!((text(&done), world.runs.count()), ("deployed 1 to prod", 1));
}

#[tokio::test(start_paused = true)]
async fn caller_decides_on_its_stream() {
    for (action, says) in
        [("accept", "deployed 1 to prod"), ("decline", "Denied: \"the user declined\".")]
    {
        let world = World::default();
        let server = world.server(Approve::caller());
        let mut pipe = Pipe::open_as(&server, Principal::named("ann"));
        pipe.legacy_with("2025-11-25", json!({"elicitation": {}})).await;
        let id = pipe.send("tools/call", call("1")).await;
        let asked = pipe.read().await;
        assert_eq!(asked["method"], "elicitation/create");
        assert_eq!(asked["params"]["message"], "Approve `deploy`?\n\nversion: \"1\"");
        assert_eq!(world.runs.count(), 0);
        let content = (action == "accept").then(|| json!({}));
        let mut reply = json!({"action": action});
        if let Some(content) = content {
            reply["content"] = content;
        }
        pipe.reply(&asked, reply).await;
        let done = pipe.answer(id).await["result"].clone();
        assert!(text(&done).starts_with(says), "{done}");
        assert_eq!(world.runs.count(), usize::from(action == "accept"));
    }
}

#[tokio::test(start_paused = true)]
async fn caller_decides_in_a_round() {
    let world = World::default();
    let mut pipe = modern(&world.server(Approve::caller()));
    let elicits = json!({"elicitation": {}});
    let mut params = call("1");
    let asked = result(&pipe.modern_with(elicits.clone(), "tools/call", params.clone()).await);
    assert!(asked["inputRequests"]["#approval"].is_object(), "{asked}");
    params["requestState"] = asked["requestState"].clone();
    params["inputResponses"] = json!({"#approval": {"action": "accept", "content": {}}});
    let done = result(&pipe.modern_with(elicits, "tools/call", params).await);
    assert_eq!((text(&done), world.runs.count()), ("deployed 1 to prod", 1));
}

#[tokio::test(start_paused = true)]
async fn caller_with_tasks_decides_with_an_update() {
    let world = World::default();
    let mut pipe = modern(&world.server(Approve::caller()));
    let task = start(&mut pipe, "1").await;
    let asked = get(&mut pipe, &task).await;
    assert_eq!(asked["status"], "input_required", "{asked}");
    let responses = json!({"#approval": {"action": "accept", "content": {}}});
    let params = json!({"taskId": task["taskId"], "inputResponses": responses});
    with_tasks(&mut pipe, "tasks/update", params).await;
    settle().await;
    assert_eq!(get(&mut pipe, &task).await["status"], "completed");
    assert_eq!(world.runs.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn caller_without_elicitation_is_sent_to_its_inbox() {
    let world = World::default();
    let mut pipe = legacy(&world.server(Approve::caller())).await;
    let pending = pipe.call("deploy", json!({"version": "1"})).await;
    assert_eq!(approval_of(&pending), "pending");
    assert!(text(&pending).contains("have them run `outlive inbox`"), "{pending}");
    assert!(!text(&pending).contains("/answer/"), "{pending}");
}

#[tokio::test(start_paused = true)]
async fn equal_calls_side_by_side_are_two_approvals() {
    let world = World::default();
    let server = world.server(by_ada());
    let (mut one, mut other) = (legacy(&server).await, legacy(&server).await);
    let first = one.send("tools/call", call("1")).await;
    let second = other.send("tools/call", call("1")).await;
    settle().await;
    let open = world.open().await;
    assert_eq!(open.len(), 2);
    assert_ne!(open[0].task, open[1].task);
    assert_eq!(world.vote(&open[0], "ada", true).await, DecisionOutcome::Settled);
    assert_eq!(world.runs.count(), 1, "one approval is one execution");
    assert_eq!(world.vote(&open[1], "ada", true).await, DecisionOutcome::Settled);
    assert_eq!(text(&one.answer(first).await["result"]), "deployed 1 to prod");
    assert_eq!(text(&other.answer(second).await["result"]), "deployed 1 to prod");
    assert_eq!(world.runs.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn anonymous_call_without_next_step_is_withdrawn_after_the_slice() {
    let world = World::default();
    let server = world.server_without_hosts(by_ada());
    let mut pipe = Pipe::speaking_as(&server, "2025-11-25", Principal::ANONYMOUS).await;
    let id = pipe.send("tools/call", call("1")).await;
    slice().await;
    let withdrawn = pipe.answer(id).await["result"].clone();
    assert_eq!((approval_of(&withdrawn), &withdrawn["isError"]), ("withdrawn", &json!(true)));
    assert!(text(&withdrawn).contains("nothing was run"), "{withdrawn}");
    settle().await;
    assert!(world.open().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn anonymous_call_is_approved_while_it_waits() {
    let world = World::default();
    let server = world.server_without_hosts(by_ada());
    let mut pipe = Pipe::speaking_as(&server, "2025-11-25", Principal::ANONYMOUS).await;
    let id = pipe.send("tools/call", call("1")).await;
    settle().await;
    world.vote(&world.only().await, "ada", true).await;
    assert_eq!(text(&pipe.answer(id).await["result"]), "deployed 1 to prod");
}

#[tokio::test(start_paused = true)]
async fn anonymous_calls_never_join() {
    let world = World::default();
    let server = world.server(by_ada());
    let mut pipe = Pipe::speaking_as(&server, "2025-11-25", Principal::ANONYMOUS).await;
    for _ in 0..2 {
        let pending = pipe.call("deploy", json!({"version": "1"})).await;
        assert_eq!(approval_of(&pending), "pending");
    }
    assert_eq!(world.open().await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn tool_without_tasks_is_bridged_even_for_client_with_tasks() {
    let world = World::default();
    let server = world.server_of(tool(by_ada()));
    let mut pipe = modern(&server);
    let mut params = call("1");
    let mut reply = with_tasks(&mut pipe, "tools/call", params.clone()).await;
    assert_eq!(reply["resultType"], "input_required", "{reply}");
    let item = world.only().await;
    // Protocol methods do not see the task.
    let found = json!({"taskId": item.task.as_str()});
    let capabilities = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    let hidden = pipe.modern_with(capabilities, "tasks/get", found).await;
    assert!(hidden.get("error").is_some(), "{hidden}");
    world.vote(&item, "ada", true).await;
    params["requestState"] = reply["requestState"].take();
    let done = with_tasks(&mut pipe, "tools/call", params).await;
    assert_eq!((text(&done), world.runs.count()), ("deployed 1 to prod", 1));
}

#[tokio::test(start_paused = true)]
async fn pending_result_is_an_error_only_if_the_schema_forbids_it() {
    use outlive::server::{Args, Json, Tool};
    #[derive(serde::Serialize, schemars::JsonSchema)]
    struct Deployed {
        version: String,
    }
    async fn typed(
        Args(arguments): Args<serde_json::Map<String, serde_json::Value>>,
    ) -> Json<Deployed> {
        Json(Deployed { version: arguments["version"].to_string() })
    }
    let typed = || Tool::new("deploy", typed).approve(by_ada());
    let world = World::default();
    let mut pipe = legacy(&world.server_of(typed())).await;
    let widened = pipe.call("deploy", json!({"version": "1"})).await;
    assert!(widened["isError"].is_null(), "{widened}");
    let world = World::default();
    let server = world.builder(|config| config).tool(typed()).build().unwrap();
    let mut pipe = legacy(&server).await;
    let id = pipe.send("tools/call", call("1")).await;
    slice().await;
    let narrow = pipe.answer(id).await["result"].clone();
    assert_eq!((approval_of(&narrow), &narrow["isError"]), ("pending", &json!(true)));
}
