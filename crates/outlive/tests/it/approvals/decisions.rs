//! Which calls need approval, and who decides about them.

use outlive::{
    server::{Principal, approve::Approve, tasks::TaskPolicy},
    store::{AuditLog, DecisionOutcome},
};
use serde_json::{Value, json};

use super::world::{
    Deploy, World, approval_of, by_ada, call, get, id_of, legacy, modern, settle, start, tool,
    two_of_three, with_tasks,
};
use crate::support::pipe::{Pipe, error, result, text};

#[tokio::test(start_paused = true)]
async fn call_that_no_condition_covers_runs_at_once() {
    let world = World::default();
    let server = world.server_of(tool(by_ada().when_argument("env", ["prod"])));
    let mut pipe = modern(&server);
    let arguments = json!({"version": "1", "env": "test"});
    let done =
        result(&pipe.modern("tools/call", json!({"name": "deploy", "arguments": arguments})).await);
    assert_eq!(text(&done), "deployed 1 to test");
    assert!(world.open().await.is_empty());
    // The default of the argument is `prod`.
    pipe.modern("tools/call", call("1")).await;
    assert_eq!((world.open().await.len(), world.runs.count()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn typed_condition_decides_over_arguments() {
    let world = World::default();
    let rule = by_ada().when(|deploy: &Deploy| deploy.is_prod());
    let mut pipe = modern(&world.server_of(tool(rule)));
    let test = json!({"name": "deploy", "arguments": {"version": "1", "env": "test"}});
    assert_eq!(text(&result(&pipe.modern("tools/call", test).await)), "deployed 1 to test");
    pipe.modern("tools/call", call("1")).await;
    assert_eq!(world.open().await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn arguments_with_duplicate_member_are_rejected() {
    let world = World::default();
    let mut pipe = legacy(&world.server(by_ada())).await;
    let message = r#"{"jsonrpc":"2.0","id":90,"method":"tools/call","params":{"name":"deploy","arguments":{"version":"1","env":"test","env":"prod"}}}"#;
    pipe.send_raw(format!("{message}\n").as_bytes()).await;
    let rejected = pipe.read().await;
    let rejected = rejected.to_string();
    assert!(
        rejected.contains("member `env` occurs twice") || rejected.contains("duplicate"),
        "{rejected}"
    );
    assert!(world.open().await.is_empty());
    assert_eq!(world.runs.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn call_is_refused_if_too_few_approvers_remain() {
    let world = World::default();
    let server = world.server(Approve::by(["ann", "ben"]).count(2));
    let refused = legacy(&server).await.result("tools/call", call("1")).await;
    assert_eq!(refused["isError"], true);
    assert!(text(&refused).contains("needs the approval of 2 people other than its caller"));
    assert!(world.open().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn scope_selects_approvers_at_the_vote() {
    let world = World::default();
    let mut pipe = modern(&world.server(Approve::scope("ops").count(2)));
    let task = start(&mut pipe, "1").await;
    let item = world.only().await;
    // Every voter of these tests has the scope `ops`.
    assert_eq!(world.vote(&item, "ann", true).await, DecisionOutcome::Unknown, "the caller");
    world.vote(&item, "x", true).await;
    assert_eq!(world.vote(&item, "y", true).await, DecisionOutcome::Settled);
    assert_eq!(get(&mut pipe, &task).await["status"], "completed");
}

#[tokio::test(start_paused = true)]
async fn undecided_calls_of_a_caller_are_limited() {
    let world = World::default();
    let server = world.server(by_ada().max_open(2));
    let mut pipe = modern(&server);
    let first = start(&mut pipe, "1").await;
    start(&mut pipe, "2").await;
    let tasks = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    let over = pipe.modern_with(tasks.clone(), "tools/call", call("3")).await;
    assert!(error(&over).to_string().contains("max_open"), "{over}");
    // Another caller has its own limit.
    let mut other = Pipe::open_as(&server, Principal::named("bob"));
    start(&mut other, "3").await;
    // A cancelled call frees its place, and so does a decided one.
    with_tasks(&mut pipe, "tasks/cancel", json!({"taskId": first["taskId"]})).await;
    let third = start(&mut pipe, "3").await;
    let open = world.open().await;
    let item = open.iter().find(|item| item.task == id_of(&third)).unwrap();
    world.vote(item, "ada", true).await;
    start(&mut pipe, "4").await;
}

#[tokio::test(start_paused = true)]
async fn idempotency_key_finds_its_task_even_if_denied() {
    let world = World::default();
    let server = world
        .builder(|config| config.hosts(super::world::hosts()))
        .idempotency_keys(true)
        .tool(tool(by_ada()).task(TaskPolicy::auto()))
        .build()
        .unwrap();
    let mut pipe = modern(&server);
    let keyed = |version: &str, key: &str| {
        let mut params = call(version);
        params["_meta"] = json!({"dev.outlive/idempotencyKey": key});
        params
    };
    let task = with_tasks(&mut pipe, "tools/call", keyed("1", "a")).await;
    let again = with_tasks(&mut pipe, "tools/call", keyed("1", "a")).await;
    assert_eq!(task["taskId"], again["taskId"], "{again}");
    world.vote(&world.only().await, "ada", false).await;
    let denied = with_tasks(&mut pipe, "tools/call", keyed("1", "a")).await;
    assert_eq!(denied["taskId"], task["taskId"], "the key finds the denied task: {denied}");
    let standing = with_tasks(&mut pipe, "tools/call", keyed("1", "b")).await;
    assert_eq!(approval_of(&standing), "denied");
    assert_eq!(world.runs.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn destructive_tool_without_rule_gets_the_shared_one() {
    let world = World::default();
    let plain = || super::world::plain_tool();
    let server = world
        .builder(|config| config.hosts(super::world::hosts()))
        .approve_destructive(two_of_three())
        .tool(plain().destructive(true))
        .build()
        .unwrap();
    modern(&server).modern("tools/call", call("1")).await;
    assert_eq!(world.only().await.binding.unwrap().count, 2);
    let world = World::default();
    let server = world.builder(|config| config).approve_destructive(two_of_three());
    let server = server.tool(plain()).build().unwrap();
    let done = result(&modern(&server).modern("tools/call", call("1")).await);
    assert_eq!(text(&done), "deployed 1 to prod");
}

#[tokio::test(start_paused = true)]
async fn audit_log_has_request_and_decision() {
    let world = World::default();
    let server = world.server(by_ada());
    let mut pipe = modern(&server);
    for (version, accepts) in [("1", true), ("2", false)] {
        start(&mut pipe, version).await;
        world.vote(&world.only().await, "ada", accepts).await;
    }
    settle().await;
    let records = world.store.read(None, 0, 100).await.unwrap();
    let actions: Vec<_> = records.iter().map(|record| record.event.action.as_str()).collect();
    for action in ["input-requested", "approved", "denied"] {
        assert!(actions.contains(&action), "{action} in {actions:?}");
    }
    let denied = records.iter().find(|record| record.event.action == "denied").unwrap();
    assert_eq!(denied.event.reason.as_deref(), Some("by ada: not before the freeze is over"));
}

#[tokio::test(start_paused = true)]
async fn audit_log_has_one_end_of_each_gated_call() {
    let world = World::default();
    let mut pipe = modern(&world.server(by_ada()));
    let approved = start(&mut pipe, "1").await;
    world.vote(&world.only().await, "ada", true).await;
    let denied = start(&mut pipe, "2").await;
    world.vote(&world.only().await, "ada", false).await;
    let cancelled = start(&mut pipe, "3").await;
    with_tasks(&mut pipe, "tasks/cancel", json!({"taskId": cancelled["taskId"]})).await;
    for (task, outcome) in
        [(&approved, "completed"), (&denied, "failed"), (&cancelled, "cancelled")]
    {
        let records = world.store.read(Some(id_of(task).as_str()), 0, 100).await.unwrap();
        let ends = records.iter().filter(|record| record.event.action == "ended");
        let ends: Vec<_> = ends.map(|record| &record.event).collect();
        let [end] = ends[..] else { panic!("one end: {records:?}") };
        assert_eq!((end.principal.as_str(), end.reason.as_deref()), ("name:ann", Some(outcome)));
    }
}

#[tokio::test(start_paused = true)]
async fn request_state_with_other_arguments_does_not_bypass_the_gate() {
    use outlive::{
        Form,
        server::{Args, Durable, Result, Tool},
    };
    #[derive(serde::Deserialize, schemars::JsonSchema, Form)]
    struct Sure {
        yes: bool,
    }
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Target {
        env: String,
    }
    async fn ask(cx: Durable, Args(target): Args<Target>) -> Result<String> {
        let sure: Sure = cx.elicit("sure", "Sure?").await?;
        Ok(format!("{} {}", target.env, sure.yes))
    }
    let world = World::default();
    let rule = by_ada().when_argument("env", ["prod"]);
    let asks = Tool::new("deploy", ask).approve(rule).bind_request_state_to(&[]);
    let mut pipe = modern(&world.server_of(asks));
    let elicits = json!({"elicitation": {}});
    let mut params = json!({"name": "deploy", "arguments": {"env": "test"}});
    let asked = result(&pipe.modern_with(elicits.clone(), "tools/call", params.clone()).await);
    let state: &Value = &asked["requestState"];
    assert!(state.is_string(), "{asked}");
    params["requestState"] = state.clone();
    params["inputResponses"] = json!({"sure": {"action": "accept", "content": {"yes": true}}});
    params["arguments"]["env"] = json!("prod");
    let waits = result(&pipe.modern_with(elicits, "tools/call", params).await);
    assert_eq!(waits["resultType"], "input_required", "{waits}");
    assert_eq!(world.open().await.len(), 1);
}
