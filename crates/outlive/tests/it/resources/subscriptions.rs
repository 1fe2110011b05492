//! Notifications about changed resource contents, in both eras.

use outlive::server::{Principal, Resource, ResourceTemplate, Server, ServerBuilder, Tool};
use serde_json::{Value, json};

use crate::support::pipe::{LEGACY, MODERN, Pipe, REVISIONS, error, with_meta};

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

fn builder() -> ServerBuilder {
    Server::builder("test", "1")
        .resource(Resource::new("mem://a", "a", async || "a"))
        .resource(Resource::new("mem://b", "b", async || "b"))
        .resource_template(ResourceTemplate::new("t://{x}", "t", async || "t"))
}

fn server() -> Server {
    builder().build().unwrap()
}

fn updated(uri: &str) -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": uri}})
}

/// Like [`updated`], with a subscription ID.
fn updated_for(id: &Value, uri: &str) -> Value {
    let params = json!({"_meta": {SUBSCRIPTION: id}, "uri": uri});
    json!({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": params})
}

/// Opens a subscription and returns its ID and the accepted filter.
async fn listen(pipe: &mut Pipe, wish: Value) -> (u64, Value) {
    let params = with_meta(json!({"notifications": wish}));
    let id = pipe.send_as_is("subscriptions/listen", params).await;
    let ack = pipe.read().await;
    assert_eq!(ack["method"], "notifications/subscriptions/acknowledged", "{ack}");
    assert_eq!(ack["params"]["_meta"], json!({SUBSCRIPTION: id}));
    (id, ack["params"]["notifications"].clone())
}

// RES-10, SUB-20
#[tokio::test(start_paused = true)]
async fn subscribed_resource_updates_are_notified_until_unsubscribe() {
    for version in LEGACY {
        let server = server();
        let mut pipe = Pipe::speaking(&server, version).await;
        let mut other = Pipe::speaking(&server, version).await;
        for uri in ["mem://a", "t://7"] {
            assert_eq!(
                pipe.result("resources/subscribe", json!({"uri": uri})).await,
                json!({}),
                "{version}"
            );
        }
        server.resource_updated("mem://b");
        server.resource_updated("mem://a");
        assert_eq!(pipe.read().await, updated("mem://a"), "{version}");
        server.resource_updated("t://7");
        assert_eq!(pipe.read().await, updated("t://7"), "{version}");
        assert_eq!(
            pipe.result("resources/unsubscribe", json!({"uri": "mem://a"})).await,
            json!({}),
            "{version}"
        );
        // Unsubscribing without a subscription succeeds.
        assert_eq!(
            pipe.result("resources/unsubscribe", json!({"uri": "mem://b"})).await,
            json!({}),
            "{version}"
        );
        server.resource_updated("mem://a");
        pipe.quiet().await;
        other.quiet().await;
    }
}

// RES-05
#[tokio::test(start_paused = true)]
async fn subscription_to_unknown_resource_is_rejected() {
    for version in LEGACY {
        let mut pipe = Pipe::speaking(&server(), version).await;
        let refusal = pipe.error("resources/subscribe", json!({"uri": "mem://none"})).await;
        assert_eq!(refusal["code"], -32002, "{version}");
        assert_eq!(refusal["data"], json!({"uri": "mem://none"}), "{version}");
        assert_eq!(pipe.error("resources/subscribe", json!({})).await["code"], -32602, "{version}");
    }
}

// VER-22
#[tokio::test(start_paused = true)]
async fn notifications_wait_for_initialized_notification() {
    let server = server();
    let mut pipe = Pipe::open(&server);
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}});
    let id = pipe.send_as_is("initialize", params).await;
    pipe.answer(id).await;
    pipe.result("resources/subscribe", json!({"uri": "mem://a"})).await;
    server.resource_updated("mem://a");
    server.add_tool(Tool::new("t", async || "t")).unwrap();
    pipe.quiet().await;
    pipe.notify("notifications/initialized", json!({})).await;
    assert_eq!(pipe.result("ping", json!({})).await, json!({}));
    server.resource_updated("mem://a");
    assert_eq!(pipe.read().await, updated("mem://a"));
}

// SEC-06
#[tokio::test(start_paused = true)]
async fn subscriptions_over_limit_are_rejected() {
    let server = builder().limits(|limits| limits.max_subscriptions = 2).build().unwrap();
    let mut pipe = Pipe::speaking(&server, "2025-11-25").await;
    for uri in ["t://1", "t://2", "t://2"] {
        pipe.result("resources/subscribe", json!({"uri": uri})).await;
    }
    let refusal = pipe.error("resources/subscribe", json!({"uri": "t://3"})).await;
    assert_eq!(refusal["code"], -32602);
    let wish = json!({"resourceSubscriptions": ["t://1", "t://2", "t://3"]});
    let answer = pipe.modern("subscriptions/listen", json!({"notifications": wish})).await;
    assert_eq!(error(&answer)["code"], -32602);
}

// RES-01, RES-10, C-15
#[tokio::test(start_paused = true)]
async fn disabled_subscriptions_are_not_declared_and_rejected() {
    let server = builder().subscriptions(false).build().unwrap();
    for version in REVISIONS {
        let mut pipe = Pipe::open(&server);
        let hello = match version {
            MODERN => pipe.result("server/discover", json!({})).await,
            _ => pipe.legacy(version).await,
        };
        assert_eq!(hello["capabilities"]["resources"], json!({"listChanged": true}), "{version}");
        for method in ["resources/subscribe", "resources/unsubscribe"] {
            assert_eq!(
                pipe.error(method, json!({"uri": "mem://a"})).await["code"],
                -32601,
                "{version}"
            );
        }
    }
    let mut pipe = Pipe::open(&server);
    let wish = json!({"resourceSubscriptions": ["mem://a"], "resourcesListChanged": true});
    assert_eq!(listen(&mut pipe, wish).await.1, json!({"resourcesListChanged": true}));
    server.resource_updated("mem://a");
    pipe.quiet().await;
}

// SUB-01, SUB-03, SUB-06, SUB-09, RES-09, META-09
#[tokio::test(start_paused = true)]
async fn resource_update_is_sent_per_subscription_with_its_id() {
    let server = server();
    let mut pipe = Pipe::open(&server);
    for id in [json!(7), json!("7"), json!("s-1")] {
        let params = with_meta(json!({"notifications": {"resourceSubscriptions": ["mem://a"]}}));
        pipe.send_json(&json!({"jsonrpc": "2.0", "id": id, "method": "subscriptions/listen", "params": params})).await;
        let ack = pipe.read().await;
        let honoured = json!({"resourceSubscriptions": ["mem://a"]});
        assert_eq!(ack["params"], json!({"_meta": {SUBSCRIPTION: id}, "notifications": honoured}));
    }
    server.resource_updated("mem://a");
    let mut copies = [pipe.read().await, pipe.read().await, pipe.read().await];
    copies.sort_by_key(Value::to_string);
    let mut expected = [json!(7), json!("7"), json!("s-1")].map(|id| updated_for(&id, "mem://a"));
    expected.sort_by_key(Value::to_string);
    assert_eq!(copies, expected);
    pipe.quiet().await;
}

// SUB-04, SUB-16, CANC-02
#[tokio::test(start_paused = true)]
async fn subscription_accepts_only_offered_and_readable_entries() {
    let server = server();
    let mut pipe = Pipe::open(&server);
    for (wish, honoured) in [
        (json!({}), json!({})),
        (json!({"toolsListChanged": true, "promptsListChanged": true}), json!({})),
        (json!({"resourcesListChanged": true}), json!({"resourcesListChanged": true})),
        (json!({"resourcesListChanged": false}), json!({})),
        (
            json!({"resourceSubscriptions": ["mem://a", "mem://none", "t://1"]}),
            json!({"resourceSubscriptions": ["mem://a", "t://1"]}),
        ),
        (json!({"com.example/other": true}), json!({})),
    ] {
        assert_eq!(listen(&mut pipe, wish.clone()).await.1, honoured, "{wish}");
    }
    // A server without resources accepts no part of the filter.
    let mut pipe = Pipe::open(&Server::builder("test", "1").build().unwrap());
    assert_eq!(listen(&mut pipe, json!({"resourceSubscriptions": ["mem://a"]})).await.1, json!({}));
    pipe.quiet().await;
    for malformed in [json!({}), json!({"notifications": 7}), json!({"notifications": null})] {
        let refusal = pipe.error("subscriptions/listen", malformed.clone()).await;
        assert_eq!(refusal["code"], -32602, "{malformed}");
    }
}

// SUB-10, STDIO-10
#[tokio::test(start_paused = true)]
async fn cancelled_subscription_gets_no_notifications() {
    let server = server();
    let mut pipe = Pipe::open(&server);
    let wish = || json!({"resourceSubscriptions": ["mem://a"]});
    let (first, _) = listen(&mut pipe, wish()).await;
    let (second, _) = listen(&mut pipe, wish()).await;
    pipe.cancel(first).await;
    // The server handles messages in order, so it has handled the cancellation before the change.
    pipe.result("resources/list", json!({})).await;
    server.resource_updated("mem://a");
    assert_eq!(pipe.read().await, updated_for(&json!(second), "mem://a"));
    pipe.quiet().await;
}

// SUB-11, SUB-12, C-14, META-09
#[tokio::test(start_paused = true)]
async fn subscription_ended_by_server_gets_result_then_cancellation() {
    let server = server();
    let mut pipe = Pipe::open(&server);
    let (id, _) = listen(&mut pipe, json!({"resourceSubscriptions": ["mem://a"]})).await;
    server.resource_updated("mem://a");
    server.endpoint().profile().bus.close();
    assert_eq!(
        pipe.read().await,
        updated_for(&json!(id), "mem://a"),
        "the pending notification comes first"
    );
    let end = pipe.answer(id).await;
    assert_eq!(end["result"]["resultType"], "complete");
    assert_eq!(end["result"]["_meta"][SUBSCRIPTION], id);
    let cancelled = pipe.read().await;
    assert_eq!(cancelled["method"], "notifications/cancelled");
    assert_eq!(cancelled["params"]["requestId"], id);
    pipe.quiet().await;
}

// SUB-02
#[tokio::test(start_paused = true)]
async fn notifications_outside_filter_are_not_sent() {
    let server = builder().tool(Tool::new("t", async || "t")).build().unwrap();
    let mut pipe = Pipe::open(&server);
    listen(&mut pipe, json!({"toolsListChanged": true, "resourcesListChanged": false})).await;
    server.resource_updated("mem://a");
    server.remove_resource("mem://b");
    pipe.quiet().await;
}

// STDIO-12: a subscription does not keep the connection open
#[tokio::test(start_paused = true)]
async fn end_of_input_ends_connection_with_subscriptions() {
    let server = server();
    for version in [MODERN, "2025-11-25"] {
        let mut pipe = Pipe::speaking_as(&server, version, Principal::named("ann")).await;
        let params = with_meta(json!({"notifications": {"resourceSubscriptions": ["mem://a"]}}));
        pipe.send_as_is("subscriptions/listen", params).await;
        pipe.read().await;
        pipe.finish().await;
        assert_eq!(pipe.read_to_end().await, Vec::<Value>::new());
    }
}

// C-08, C-16
#[tokio::test(start_paused = true)]
async fn session_and_subscription_on_one_pipe_are_both_notified() {
    let server = server();
    let mut pipe = Pipe::speaking(&server, "2025-11-25").await;
    pipe.result("resources/subscribe", json!({"uri": "mem://a"})).await;
    let (id, _) = listen(&mut pipe, json!({"resourceSubscriptions": ["mem://b"]})).await;
    server.resource_updated("mem://a");
    assert_eq!(pipe.read().await, updated("mem://a"));
    server.resource_updated("mem://b");
    assert_eq!(pipe.read().await, updated_for(&json!(id), "mem://b"));
    pipe.quiet().await;
}
