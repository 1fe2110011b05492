//! Change notifications and the result cache, on every transport.

use std::time::Duration;

use outlive::{
    client::notifications::{ListenFilter, ServerNotification, Subscription},
    server::Tool,
};
use serde_json::json;

use super::{
    kit::{EVERYWHERE, Place, builder, server},
    script::{HttpScript, discovered, ok},
};

async fn next(changes: &mut Subscription) -> ServerNotification {
    tokio::time::timeout(Duration::from_secs(10), changes.next()).await.unwrap().unwrap()
}

// SUB-01, SUB-07, SUB-08, STDIO-08, RES-09, RES-10
#[tokio::test]
async fn change_notifications_reach_client_on_every_transport() {
    for (wire, version) in EVERYWHERE {
        let server = server();
        let place = Place::of(&server, wire).await;
        let client = place.connect(builder(), version).await;
        let mut tools = client.listen(ListenFilter::new().tools()).await.unwrap();
        let mut resource = client.listen(ListenFilter::new().resource("file:///a")).await.unwrap();
        assert_eq!(tools.accepted_filter().tools_list_changed, Some(true));
        server.add_tool(Tool::new("new", || async { "new" })).unwrap();
        server.resource_updated("file:///a");
        assert!(
            matches!(next(&mut tools).await, ServerNotification::ToolsChanged),
            "{wire:?} {version:?}"
        );
        match next(&mut resource).await {
            ServerNotification::ResourceUpdated(uri) => assert_eq!(uri, "file:///a"),
            other => panic!("{other:?}"),
        }
        // The notification invalidated the cached list.
        let names = client.list_tools().collect().await.unwrap();
        assert!(names.iter().any(|tool| tool.name == "new"), "{wire:?} {version:?}");
    }
}

// SUB-13, SUB-17
#[tokio::test]
async fn broken_subscription_reconnects_and_reports_it() {
    let peer = HttpScript::new(|seen, count| async move {
        if seen.method() == "server/discover" {
            return ok(&seen, &discovered());
        }
        let meta = json!({"io.modelcontextprotocol/subscriptionId": seen.id()});
        let agreed = json!({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
            "params": {"notifications": {"toolsListChanged": true}, "_meta": meta}});
        let told = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {"_meta": meta}});
        let over = json!({"jsonrpc": "2.0", "id": seen.id(), "result": {"resultType": "complete", "_meta": meta}});
        super::script::events(&match count {
            1 => format!("data: {agreed}\n\n"),
            _ => format!("data: {agreed}\n\ndata: {told}\n\ndata: {over}\n\n"),
        })
    })
    .await;
    let client = builder().connect(peer.url.as_str()).await.unwrap();
    let mut changes = client.listen(ListenFilter::new().tools()).await.unwrap();
    assert!(matches!(next(&mut changes).await, ServerNotification::Reconnected));
    assert!(matches!(next(&mut changes).await, ServerNotification::ToolsChanged));
    assert!(changes.next().await.is_none());
}

// CACHE-05, CACHE-07, CACHE-13
#[tokio::test]
async fn list_result_is_cached_for_its_ttl() {
    for (ttl, lists) in [(json!(60_000), 1), (json!(0), 2), (json!(-5), 2), (json!(null), 2)] {
        let hints = ttl.clone();
        let peer = HttpScript::new(move |seen, _| {
            let hints = hints.clone();
            async move {
                match seen.method() {
                    "server/discover" => ok(&seen, &discovered()),
                    _ => ok(&seen, &json!({"resultType": "complete", "tools": [], "ttlMs": hints})),
                }
            }
        })
        .await;
        let client = builder().connect(peer.url.as_str()).await.unwrap();
        for _ in 0..2 {
            client.list_tools().collect().await.unwrap();
        }
        assert_eq!(peer.all("tools/list").len(), lists, "{ttl}");
    }
}
