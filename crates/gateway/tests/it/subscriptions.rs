//! Changes of single resources of upstreams.

use std::time::Duration;

use outlive::{
    client::{
        Client, Version,
        notifications::{ListenFilter, ServerNotification, Subscription},
    },
    server::{
        Resource, Server,
        http::{HttpConfig, HttpServer, StaticTokens},
    },
};
use serde_json::json;

use crate::support::{HttpUpstream, Served, eventually, process};

fn notes() -> Server {
    let note = |uri: &str| Resource::new(uri, "note", async || "text".to_owned());
    Server::builder("up", "1")
        .resource(note("note://x"))
        .resource(note("note://y"))
        .build()
        .unwrap()
}

async fn listens(client: &Client, uri: &str) -> Subscription {
    let uris: Vec<String> = {
        let listed = client.list_resources().collect().await.unwrap();
        listed.into_iter().map(|resource| resource.uri).collect()
    };
    assert!(uris.iter().any(|known| known == uri), "{uris:?}");
    client.listen(ListenFilter::new().resource(uri)).await.unwrap()
}

/// Returns the next changed URI.
async fn changed(subscription: &mut Subscription) -> String {
    loop {
        let next = tokio::time::timeout(Duration::from_secs(20), subscription.next());
        let next = next.await.expect("a notification within 20 s").unwrap();
        if let ServerNotification::ResourceUpdated(uri) = next {
            return uri;
        }
    }
}

/// Repeats a change until the subscriber gets it: the gateway subscribes in the background.
async fn changed_by(subscription: &mut Subscription, change: impl Fn()) -> String {
    for _ in 0..100 {
        change();
        let next = tokio::time::timeout(Duration::from_millis(100), changed(subscription));
        if let Ok(uri) = next.await {
            return uri;
        }
    }
    panic!("no notification within 10 s");
}

#[tokio::test(flavor = "multi_thread")]
async fn change_of_a_resource_reaches_clients_of_both_eras() {
    for upstream_version in [Version::V2025_06_18, Version::V2026_07_28] {
        let upstream = HttpUpstream::serve(notes()).await;
        let served = Served::new([upstream.settings("up").protocol_version(upstream_version)]);
        for version in [Version::V2025_06_18, Version::V2026_07_28] {
            let client = served.client(version).await;
            let mut subscription = listens(&client, "note://x").await;
            let change = || upstream.server.resource_updated("note://x");
            let uri = changed_by(&mut subscription, change).await;
            assert_eq!(uri, "note://x", "{upstream_version} {version}");
        }
        served.gateway.shutdown().await;
    }
}

async fn two_clients(served: &Served) -> (HttpServer, Client, Client) {
    let tokens = ["token-of-ada-0123456789", "token-of-bob-0123456789"];
    let known = StaticTokens::new().with("ada", tokens[0]).with("bob", tokens[1]);
    let config = HttpConfig::new().authenticator(known);
    let serving = served.server.serve_http("127.0.0.1:0", config).await.unwrap();
    let connect = async |token: &str| {
        let builder = Client::builder("test", "1").token(token);
        let builder = builder.protocol_version(Version::V2025_11_25);
        builder.connect(serving.url().as_str()).await.unwrap()
    };
    let (ada, bob) = (connect(tokens[0]).await, connect(tokens[1]).await);
    (serving, ada, bob)
}

#[tokio::test(flavor = "multi_thread")]
async fn change_of_a_resource_reaches_only_its_subscriber() {
    let upstream = HttpUpstream::serve(notes()).await;
    let served = Served::new([upstream.settings("up")]);
    let (_serving, ada, bob) = two_clients(&served).await;
    let mut of_ada = listens(&ada, "note://x").await;
    let mut of_bob = listens(&bob, "note://y").await;
    // Both are subscribed once each got a change of its own resource.
    changed_by(&mut of_bob, || upstream.server.resource_updated("note://y")).await;
    let change = || upstream.server.resource_updated("note://x");
    assert_eq!(changed_by(&mut of_ada, change).await, "note://x");
    upstream.server.resource_updated("note://y");
    assert_eq!(changed(&mut of_bob).await, "note://y", "no change of note://x came before");
    served.gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn subscription_is_made_where_the_calls_of_the_client_run() {
    let served = Served::new([process("child", "serves", None)]);
    // A client with forms has a process of its own.
    let client = served.answering(Version::V2025_06_18).await;
    let mut subscription = listens(&client, "note://x").await;
    for _ in 0..50 {
        client.call_tool("child__touch", json!({})).await.unwrap();
        let next = tokio::time::timeout(Duration::from_millis(200), changed(&mut subscription));
        if next.await.is_ok() {
            served.gateway.shutdown().await;
            return;
        }
    }
    panic!("no notification within 10 s");
}

#[tokio::test(flavor = "multi_thread")]
async fn subscription_is_repeated_in_a_new_process() {
    let served = Served::new([process("child", "serves", None)]);
    let client = served.client(Version::V2025_06_18).await;
    let mut subscription = listens(&client, "note://x").await;
    client.call_tool("child__exit", json!({})).await.unwrap();
    eventually("a new process", async || {
        let result = client.call_tool("child__touch", json!({})).await.unwrap();
        result.is_error != Some(true)
    })
    .await;
    // A change may have been missed, so the subscriber is notified after the reconnect, too.
    assert_eq!(changed(&mut subscription).await, "note://x");
    let mut touched = false;
    for _ in 0..50 {
        client.call_tool("child__touch", json!({})).await.unwrap();
        let next = tokio::time::timeout(Duration::from_millis(200), changed(&mut subscription));
        touched = next.await.is_ok();
        if touched {
            break;
        }
    }
    assert!(touched, "changes in the new process reach the subscriber");
    served.gateway.shutdown().await;
}
