//! Input requests of handlers to people.

use outlive::{
    Form,
    server::{
        Durable, Principal, Result, Tool,
        durable::{Audience, ElicitOutcome, InputRequestSet, Round, RoundOutcome},
        tasks::TaskPolicy,
    },
    store::{Decision, DecisionOutcome, DecisionStore},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::world::{World, get, legacy, modern, settle, with_tasks};
use crate::support::pipe::{Pipe, raw, result, text};

#[derive(Deserialize, JsonSchema, Form)]
struct Limit {
    amount: u32,
}

async fn refund(cx: Durable) -> Result<String> {
    let asked = cx.elicit::<Limit>("limit", "Up to which amount?");
    let limit = asked.audience(Audience::Names(vec!["ada".to_owned()])).await?;
    Ok(format!("up to {}", limit.amount))
}

async fn rounds(round: Round) -> Result<RoundOutcome<String>> {
    Ok(match round.form::<Limit>("limit")? {
        Some(ElicitOutcome::Accepted(limit)) => {
            RoundOutcome::Done(format!("up to {}", limit.amount))
        }
        _ => {
            let asked = InputRequestSet::new().form::<Limit>("limit", "Up to which amount?")?;
            RoundOutcome::Ask(asked.audience(Audience::Scope("ops".to_owned())))
        }
    })
}

async fn respond(world: &World, person: &str) -> DecisionOutcome {
    let item = world.only().await;
    let response = raw(&json!({"action": "accept", "content": {"amount": 7}}));
    let decision =
        Decision::new(Some(person.to_owned()), true, response).scopes(vec!["ops".to_owned()]);
    let outcome = world.store.decide(&item.task, &item.name, &decision).await.unwrap();
    settle().await;
    outcome
}

#[tokio::test(start_paused = true)]
async fn people_respond_to_handler_and_client_sees_working_task() {
    for tool in [Tool::new("deploy", refund), Tool::new("deploy", rounds)] {
        let world = World::default();
        let mut pipe = modern(&world.server_of(tool.task(TaskPolicy::auto())));
        let task = with_tasks(&mut pipe, "tools/call", json!({"name": "deploy"})).await;
        assert_eq!(task["resultType"], "task", "the call becomes a task: {task}");
        settle().await;
        assert_eq!(get(&mut pipe, &task).await["status"], "working");
        assert_eq!(respond(&world, "ann").await, DecisionOutcome::Unknown);
        assert_eq!(respond(&world, "ada").await, DecisionOutcome::Settled);
        let done = get(&mut pipe, &task).await;
        assert_eq!(text(&done["result"]), "up to 7", "{done}");
    }
}

#[tokio::test(start_paused = true)]
async fn bridged_call_waits_for_people() {
    let world = World::default();
    let tool = Tool::new("deploy", refund).task(TaskPolicy::auto());
    let mut pipe = legacy(&world.server_of(tool)).await;
    let id = pipe.send("tools/call", json!({"name": "deploy"})).await;
    settle().await;
    assert_eq!(respond(&world, "ada").await, DecisionOutcome::Settled);
    assert_eq!(text(&pipe.answer(id).await["result"]), "up to 7");
}

#[tokio::test(start_paused = true)]
async fn call_that_cannot_become_a_task_fails() {
    for tool in [Tool::new("deploy", refund), Tool::new("deploy", rounds)] {
        let world = World::default();
        let server = world.server_of(tool);
        let mut pipe = Pipe::open_as(&server, Principal::named("ann"));
        let failed = result(&pipe.modern("tools/call", json!({"name": "deploy"})).await);
        assert_eq!(failed["isError"], true);
        assert!(text(&failed).contains("`limit` needs a task"), "{failed}");
    }
}
