//! The operator API on running servers.

use std::sync::Arc;

use outlive::{
    operator::Operator,
    server::{
        Durable, Principal, Result, Tool,
        durable::Secret,
        tasks::{TaskConfig, TaskPolicy},
    },
    store::{AuditLog, JournalEntry, MemoryStore, Phase, PurgeOutcome, TaskFilter, TaskId},
};
use serde_json::json;

use super::world::{Counts, builder, modern, start, until};
use crate::support::pipe::{Pipe, error, text};

async fn login(cx: Durable) -> Result<String> {
    let token: Secret<String> =
        cx.step("token", async || Ok(Secret::new("hunter2".to_owned()))).await?;
    let user: String = cx.step("user", async || Ok("ada".to_owned())).await?;
    Ok(format!("{user}: {} letters", token.expose().len()))
}

fn server(store: &Arc<MemoryStore>) -> outlive::server::Server {
    let config = TaskConfig::new(Arc::clone(store) as _);
    let login = Tool::new("login", login).task(TaskPolicy::Always);
    builder(config, &Counts::default()).tool(login).build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn operator_sees_recorded_secret_as_secret() {
    let store = Arc::new(MemoryStore::new());
    let mut pipe = Pipe::open(&server(&store));
    let id = start(&mut pipe, "login", json!({})).await;
    let done = until(&mut pipe, &id, "completed").await;
    assert_eq!(text(&done["result"]), "ada: 7 letters");
    let operator = Operator::new(Arc::clone(&store) as _);
    let shown = operator.show(&TaskId::new(id)).await.unwrap().unwrap();
    let entries = &shown.task.entries;
    assert!(matches!(entries["token"], JournalEntry::Secret(_)), "{entries:?}");
    assert!(matches!(entries["user"], JournalEntry::Value(_)), "{entries:?}");
}

#[tokio::test(start_paused = true)]
async fn operator_finds_audit_events_of_anonymous_and_named_tasks() {
    let store = Arc::new(MemoryStore::new());
    let server = server(&store);
    let operator = Operator::new(Arc::clone(&store) as _).named("ada");
    for principal in [Principal::named("bob"), Principal::ANONYMOUS] {
        let mut pipe = Pipe::open_as(&server, principal.clone());
        let id = TaskId::new(start(&mut pipe, "deploy", json!({})).await);
        until(&mut pipe, id.as_str(), "input_required").await;
        // The engine writes audit events in batches.
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        let shown = operator.show(&id).await.unwrap().unwrap();
        assert_eq!(shown.task.task.principal, principal.key());
        assert_eq!(shown.events[0].event.action, "created", "{:?}", shown.events);
        assert!(shown.task.input_requests.iter().any(|asked| asked.name == "approve"));

        let refused = operator.purge(&id, false).await.unwrap();
        assert!(matches!(refused, Some(PurgeOutcome::NotEnded(_))), "{refused:?}");
        let gone = operator.purge(&id, true).await.unwrap();
        assert!(matches!(gone, Some(PurgeOutcome::Purged(..))), "{gone:?}");
        let unknown = modern(&mut pipe, "tasks/get", json!({"taskId": id.as_str()})).await;
        assert_eq!(error(&unknown)["code"], -32602);
        let events = store.read(Some(&shown.events[0].event.task), 0, 100).await.unwrap();
        let purged = events.iter().find(|audit| audit.event.action == "purged").unwrap();
        assert_eq!(purged.event.principal, "operator:ada");
    }
    let left = operator.list(&TaskFilter::default(), None, 10).await.unwrap();
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test(start_paused = true)]
async fn operator_list_contains_tasks_of_every_principal() {
    let store = Arc::new(MemoryStore::new());
    let server = server(&store);
    for principal in [Principal::named("bob"), Principal::ANONYMOUS] {
        let mut pipe = Pipe::open_as(&server, principal);
        let id = start(&mut pipe, "login", json!({})).await;
        until(&mut pipe, &id, "completed").await;
    }
    let operator = Operator::new(Arc::clone(&store) as _);
    let ended = TaskFilter::default().phase(Some(Phase::Ended));
    let tasks = operator.list(&ended, None, 10).await.unwrap();
    let mut principals: Vec<_> = tasks.iter().map(|task| task.principal.as_str()).collect();
    principals.sort_unstable();
    assert_eq!(principals, ["anonymous", "name:bob"]);
}
