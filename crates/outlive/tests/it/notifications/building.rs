//! Mistakes in targets, which `build()` reports.

use std::sync::Arc;

use outlive::{
    deliveries::{Target, Webhook},
    server::{Server, tasks::TaskConfig},
    store::MemoryStore,
};

use super::receiver::{SECRET, builder};

fn webhook() -> Webhook {
    Webhook::new("https://hooks.example.com/secret-path").secret(SECRET)
}

#[track_caller]
fn check(target: impl Into<Target>, says: &str) {
    let store = Arc::new(MemoryStore::new());
    let error = builder(&store).notify(target).build().unwrap_err().to_string();
    assert!(error.contains(says), "{error}");
    assert!(!error.contains("hunter2") && !error.contains("secret-path"), "{error}");
}

#[test]
fn target_that_could_never_send_is_rejected() {
    check(Webhook::new("https://a.example"), "the webhook has no secret");
    check(Webhook::new("https://a.example").secret("hunter2"), "does not start with `whsec_`");
    check(Webhook::new("http://a.example").secret(SECRET), "must start with https://");
    check(Webhook::new("a.example").secret(SECRET), "must start with http");
    check(webhook().ca_file("/no/such/file"), "cannot be read");
    check(Target::new("a b", webhook()), "invalid name");
    check(Target::new("a", webhook()).events([]), "has no events");
}

#[test]
fn two_targets_with_one_name_are_rejected() {
    let store = Arc::new(MemoryStore::new());
    let error = builder(&store).notify(webhook()).notify(webhook()).build().unwrap_err();
    assert!(error.to_string().contains("two notification targets are named `webhook`"), "{error}");
    builder(&store).notify(webhook()).notify(Target::new("b", webhook())).build().unwrap();
}

#[test]
fn target_without_a_store_for_people_is_rejected() {
    let plain = TaskConfig::new(Arc::new(MemoryStore::new()));
    for builder in [Server::builder("s", "1"), Server::builder("s", "1").tasks(plain)] {
        let error = builder.notify(webhook()).build().unwrap_err();
        assert!(error.to_string().contains("notifications need a store"), "{error}");
    }
}
