//! Standing denials before a worker has seen the decision.

use std::{env::temp_dir, fs, process, sync::Arc};

use outlive::{
    server::{
        SealKeys, Server,
        approve::Approve,
        tasks::{TaskConfig, TaskPolicy},
    },
    store::{
        Decision, DecisionOutcome, InboxItem, InboxReader, MemoryStore, PeopleStore, SqliteStore,
    },
};
use serde_json::json;

use super::world::{Runs, approval_of, by_ada, call, modern, start, tool, with_tasks};
use crate::support::pipe::{raw, text};

/// A server that runs no task, so that no worker sees a decision.
fn server(store: &Arc<dyn PeopleStore>, rule: Approve) -> Server {
    let config = TaskConfig::people(Arc::clone(store));
    Server::builder("shop", "1")
        .seal_keys(SealKeys::new([9; 32]))
        .state(Runs::default())
        .tasks(config.engine(|engine| engine.max_running = 0))
        .tool(tool(rule).task(TaskPolicy::auto()))
        .build()
        .unwrap()
}

async fn open(store: &Arc<dyn PeopleStore>) -> Vec<InboxItem> {
    store.open_for(&InboxReader::default().all(true), None, 100).await.unwrap()
}

/// Checks that an equal call gets the denial, and that another one makes a new request.
async fn stands(store: &Arc<dyn PeopleStore>, server: &Server, reason: &str) {
    let mut pipe = modern(server);
    let again = with_tasks(&mut pipe, "tools/call", call("1")).await;
    assert_eq!(again["resultType"], "complete", "the call made a new request: {again}");
    let says = format!("Denied: \"{reason}\". Nothing was run.");
    assert!(text(&again).starts_with(&says), "{again}");
    assert_eq!(approval_of(&again), "denied");
    assert!(open(store).await.is_empty());
    start(&mut pipe, "2").await;
}

/// Denies a call by a vote, and repeats the call at once.
async fn denies_by_vote(store: Arc<dyn PeopleStore>) {
    let server = server(&store, by_ada());
    start(&mut modern(&server), "1").await;
    let item = open(&store).await.remove(0);
    let reason = "not before the freeze is over";
    let response = json!({"action": "decline", "reason": reason, "by": "ada"});
    let decision = Decision::new(Some("ada".to_owned()), false, raw(&response))
        .digest(item.binding.map(|binding| binding.digest));
    let decided = store.decide(&item.task, &item.name, &decision).await.unwrap();
    assert_eq!(decided, DecisionOutcome::Settled);
    stands(&store, &server, reason).await;
}

/// Declines a call as its client, and repeats the call at once.
async fn denies_as_client(store: Arc<dyn PeopleStore>) {
    let server = server(&store, Approve::caller());
    let mut pipe = modern(&server);
    let task = start(&mut pipe, "1").await;
    let responses = json!({"#approval": {"action": "decline"}});
    let params = json!({"taskId": task["taskId"], "inputResponses": responses});
    with_tasks(&mut pipe, "tasks/update", params).await;
    stands(&store, &server, "the user declined").await;
}

#[tokio::test]
async fn denial_stands_from_the_commit_of_the_vote_in_memory() {
    denies_by_vote(Arc::new(MemoryStore::new())).await;
    denies_as_client(Arc::new(MemoryStore::new())).await;
}

#[tokio::test]
async fn denial_stands_from_the_commit_of_the_vote_in_a_file() {
    let folder = temp_dir().join(format!("outlive-denials-{}", process::id()));
    fs::create_dir_all(&folder).unwrap();
    let store = |name| Arc::new(SqliteStore::open(folder.join(name)).unwrap());
    denies_by_vote(store("vote.db")).await;
    denies_as_client(store("client.db")).await;
    fs::remove_dir_all(&folder).unwrap();
}

#[tokio::test]
async fn denial_with_a_ttl_of_zero_denies_no_other_call() {
    let store: Arc<dyn PeopleStore> = Arc::new(MemoryStore::new());
    let server = server(&store, Approve::caller().denial_ttl(std::time::Duration::ZERO));
    let mut pipe = modern(&server);
    let task = start(&mut pipe, "1").await;
    let responses = json!({"#approval": {"action": "decline"}});
    let params = json!({"taskId": task["taskId"], "inputResponses": responses});
    with_tasks(&mut pipe, "tasks/update", params).await;
    start(&mut pipe, "1").await;
}
