//! Rules that a server rejects when it is built.

use std::sync::Arc;

use outlive::{
    server::{Server, approve::Approve, tasks::TaskConfig},
    store::MemoryStore,
};

use super::world::{Runs, by_ada, tool};

#[track_caller]
fn check(config: Option<TaskConfig>, approve: Approve, reason: &str) {
    let mut builder = Server::builder("shop", "1").state(Runs::default());
    if let Some(config) = config {
        builder = builder.tasks(config);
    }
    let error = builder.tool(tool(approve)).build().unwrap_err().to_string();
    assert!(error.starts_with("tool `deploy`: ") && error.contains(reason), "{error}");
}

#[test]
fn gate_without_store_of_decisions_is_rejected() {
    check(None, by_ada(), "no store with decisions");
    let plain = TaskConfig::new(Arc::new(MemoryStore::new()));
    check(Some(plain), by_ada(), "no store with decisions");
}

#[test]
fn impossible_rule_is_rejected() {
    let config = || Some(TaskConfig::in_memory());
    check(config(), by_ada().count(2), "needs 2 people and names 1");
    check(config(), Approve::caller().count(2), "the caller alone decides");
    check(config(), Approve::scope("x").count(2).links(true), "names no person");
    check(config(), by_ada().when_argument("enviroment", ["prod"]), "which does not exist");
}
