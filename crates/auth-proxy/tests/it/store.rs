//! Tests of logins in the task store, which outlive the process.

use std::{sync::Arc, time::Duration};

use outlive::{auth_proxy::TaskLoginStore, store::open};
use outlive_auth_proxy::LoginStore;

use crate::support::{LOOPBACK, World};

/// Returns a folder and the URL of a store in it.
fn place(name: &str) -> (std::path::PathBuf, String) {
    let folder = std::env::temp_dir().join(format!("outlive-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let url = format!("sqlite:{}", folder.join("tasks.db").display());
    (folder, url)
}

#[tokio::test]
async fn task_login_store_behaves_like_the_memory_store() {
    let (folder, url) = place("proxy-notes");
    for url in ["memory:", &url] {
        let store = TaskLoginStore::new(open(url).await.unwrap());
        let minute = Duration::from_secs(60);
        assert!(store.put_if_absent("k", "one".to_owned(), minute).await.unwrap());
        assert!(!store.put_if_absent("k", "two".to_owned(), minute).await.unwrap());
        assert_eq!(store.get("k").await.unwrap().as_deref(), Some("one"));
        store.put("k", String::new(), minute).await.unwrap();
        assert_eq!(store.get("k").await.unwrap().as_deref(), Some(""));
        store.delete("k").await.unwrap();
        assert_eq!(store.get("k").await.unwrap(), None);
        assert!(store.put_if_absent("k", "three".to_owned(), minute).await.unwrap());
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[tokio::test]
async fn login_outlives_the_proxy_process() {
    let (folder, url) = place("proxy-login");
    let store = Arc::new(TaskLoginStore::new(open(&url).await.unwrap()));
    let world = World::with(|proxy| proxy.login_store(Arc::clone(&store))).await;
    let id = world.register(LOOPBACK).await;
    let given = world.token(&world.code(&id, LOOPBACK).await, &id, &[]).await;
    assert_eq!(given.status, 200, "{}", given.body);
    // Another proxy with the same issuer and secret, which shares only the file.
    let issuer = world.base.clone();
    let again = Arc::new(TaskLoginStore::new(open(&url).await.unwrap()));
    let world = World::with(|proxy| proxy.issuer(&issuer).login_store(Arc::clone(&again))).await;
    let next = world.refresh(&given.text("refresh_token"), &id, &[]).await;
    assert_eq!(next.status, 200, "{}", next.body);
    std::fs::remove_dir_all(folder).unwrap();
}
