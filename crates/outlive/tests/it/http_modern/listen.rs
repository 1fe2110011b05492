//! `subscriptions/listen`: acknowledgement, filters and the end of a subscription.

use outlive::server::{Prompt, Resource, Server, Tool, http::HttpConfig};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::support::http::{HttpFixture, Request, Stream, within};

const ID: &str = "io.modelcontextprotocol/subscriptionId";

fn listen(id: impl Into<Value>, notifications: Value) -> Request {
    Request::modern("subscriptions/listen").id(id).param("notifications", notifications)
}

/// Asserts that the next message acknowledges this subscription, and returns the accepted filter.
async fn acknowledged(stream: &mut Stream, id: Value) -> Value {
    let ack = stream.message().await;
    assert_eq!(ack["method"], "notifications/subscriptions/acknowledged", "{ack}");
    assert_eq!(ack["params"]["_meta"], json!({ID: id}));
    ack["params"]["notifications"].clone()
}

/// Asserts that the next message is this change notification, and returns its parameters.
async fn changed(stream: &mut Stream, id: impl Into<Value>, method: &str) -> Value {
    let change = stream.message().await;
    assert_eq!(change["method"], method, "{change}");
    assert_eq!(change["params"]["_meta"], json!({ID: id.into()}));
    change["params"].clone()
}

const TOOLS: &str = "notifications/tools/list_changed";
const PROMPTS: &str = "notifications/prompts/list_changed";
const RESOURCES: &str = "notifications/resources/list_changed";
const UPDATED: &str = "notifications/resources/updated";

#[tokio::test]
async fn subscription_is_acknowledged_first_with_its_id() {
    // SUB-03, SUB-06, HTTP26-26
    let server = HttpFixture::start().await;
    for id in [json!(7), json!("7")] {
        let mut stream = server.open(listen(id.clone(), json!({"toolsListChanged": true}))).await;
        assert_eq!(stream.header("x-accel-buffering"), Some("no"));
        let (event, ack) = stream.said().await;
        assert_eq!((event.id, event.retry), (None, None));
        assert_eq!(
            ack,
            json!({
                "jsonrpc": "2.0",
                "method": "notifications/subscriptions/acknowledged",
                "params": {"_meta": {ID: id}, "notifications": {"toolsListChanged": true}},
            })
        );
        server.server.add_tool(Tool::new("new", async || "new")).unwrap();
        assert_eq!(changed(&mut stream, id, TOOLS).await.as_object().unwrap().len(), 1);
    }
}

#[tokio::test]
async fn subscription_gets_only_requested_notifications() {
    // SUB-02
    let server = HttpFixture::start().await;
    let wish = json!({"toolsListChanged": false, "promptsListChanged": true, "resourceSubscriptions": ["mem://b"]});
    let mut stream = server.open(listen(1, wish)).await;
    let honoured = acknowledged(&mut stream, json!(1)).await;
    assert_eq!(honoured, json!({"promptsListChanged": true, "resourceSubscriptions": ["mem://b"]}));

    // The second stream gets every notification, so it shows when the first could have had it.
    let all = json!({"toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true,
        "resourceSubscriptions": ["mem://a", "mem://b"]});
    let mut witness = server.open(listen(2, all)).await;
    acknowledged(&mut witness, json!(2)).await;

    server.server.add_tool(Tool::new("new", async || "new")).unwrap();
    changed(&mut witness, 2, TOOLS).await;
    server.server.add_resource(Resource::new("mem://c", "c", async || "C")).unwrap();
    changed(&mut witness, 2, RESOURCES).await;
    server.server.resource_updated("mem://a");
    assert_eq!(changed(&mut witness, 2, UPDATED).await["uri"], "mem://a");
    server.server.add_prompt(Prompt::new("new", async || "new")).unwrap();
    changed(&mut witness, 2, PROMPTS).await;
    changed(&mut stream, 1, PROMPTS).await;
    server.server.resource_updated("mem://b");
    assert_eq!(changed(&mut witness, 2, UPDATED).await["uri"], "mem://b");
    assert_eq!(changed(&mut stream, 1, UPDATED).await["uri"], "mem://b");
}

#[tokio::test]
async fn change_is_notified_once_per_subscription() {
    // SUB-08, SUB-09, C-16
    let server = HttpFixture::start().await;
    let wish = json!({"toolsListChanged": true});
    let mut streams = Vec::new();
    for id in 1..=3 {
        let mut stream = server.open(listen(id, wish.clone())).await;
        acknowledged(&mut stream, json!(id)).await;
        streams.push(stream);
    }
    for round in 0..3 {
        // Two changes within the debounce interval yield one notification.
        server.server.add_tool(Tool::new(format!("a{round}"), async || "")).unwrap();
        server.server.add_tool(Tool::new(format!("b{round}"), async || "")).unwrap();
        for (index, stream) in streams.iter_mut().enumerate() {
            changed(stream, index + 1, TOOLS).await;
        }
    }
}

#[tokio::test]
async fn acknowledgement_omits_unsupported_notifications() {
    // SUB-04, SUB-16
    let everything = json!({"toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true,
        "resourceSubscriptions": ["mem://a", "mem://none"]});
    let bare = Server::builder("bare", "1").tool(Tool::new("t", async || "t")).build().unwrap();
    let bare = HttpFixture::of(bare, HttpConfig::new()).await;
    let mut stream = bare.open(listen(1, everything.clone())).await;
    let honoured = acknowledged(&mut stream, json!(1)).await;
    assert_eq!(honoured["toolsListChanged"], true);
    assert_eq!(
        (honoured.get("promptsListChanged"), honoured.get("resourcesListChanged")),
        (None, None)
    );

    let server = HttpFixture::build(HttpConfig::new(), |server| server.subscriptions(false)).await;
    let mut stream = server.open(listen(1, everything.clone())).await;
    assert_eq!(acknowledged(&mut stream, json!(1)).await.get("resourceSubscriptions"), None);

    let server = HttpFixture::start().await;
    let mut stream = server.open(listen(1, everything)).await;
    let honoured = acknowledged(&mut stream, json!(1)).await;
    assert_eq!(honoured["resourceSubscriptions"], json!(["mem://a"]), "only readable resources");
}

#[tokio::test]
async fn empty_subscription_stays_open_and_silent() {
    // SUB-16
    let server = HttpFixture::start().await;
    let mut stream = server.open(listen(1, json!({}))).await;
    assert_eq!(acknowledged(&mut stream, json!(1)).await, json!({}));
    let mut witness = server.open(listen(2, json!({"toolsListChanged": true}))).await;
    acknowledged(&mut witness, json!(2)).await;
    server.server.remove_tool("echo");
    changed(&mut witness, 2, TOOLS).await;
    // The next message is the end of the subscription.
    let shutdown = server.serving.shutdown();
    let last = async {
        let last = stream.message().await;
        assert_eq!(last["result"]["_meta"][ID], 1, "{last}");
        stream.ended().await
    };
    within(async { tokio::join!(shutdown, last, witness.message()) }).await;
}

#[tokio::test]
async fn progress_and_log_messages_are_not_sent_on_subscription() {
    // SUB-15, HTTP26-26
    let server = HttpFixture::start().await;
    let request = listen(1, json!({"toolsListChanged": true}))
        .meta("progressToken", json!("p"))
        .reserved("logLevel", json!("debug"));
    let mut stream = server.open(request).await;
    acknowledged(&mut stream, json!(1)).await;
    let call = Request::call("log", json!({"key": "l"})).meta("progressToken", json!("p"));
    let mut beside = server.open(call.reserved("logLevel", json!("debug"))).await;
    server.world.release("l");
    while beside.message().await.get("result").is_none() {}
    server.server.remove_tool("echo");
    changed(&mut stream, 1, TOOLS).await;
}

#[tokio::test]
async fn malformed_subscription_is_invalid_params() {
    // SUB-01
    let server = HttpFixture::build(HttpConfig::new(), |server| {
        server.limits(|limits| limits.max_subscriptions = 2)
    })
    .await;
    let rows = [
        Request::modern("subscriptions/listen").id(1),
        listen(1, json!(null)),
        listen(1, json!([])),
        listen(1, json!("all")),
        listen(1, json!({"toolsListChanged": "yes"})),
        listen(1, json!({"resourceSubscriptions": "mem://a"})),
        listen(1, json!({"resourceSubscriptions": [1]})),
        listen(1, json!({"resourceSubscriptions": ["mem://a", "mem://b", "mem://c"]})),
    ];
    for request in rows {
        let response = server.send(&request).await;
        let answer = response.json();
        assert_eq!(
            (response.status(), &answer["error"]["code"]),
            (200, &json!(-32602)),
            "{answer}"
        );
        assert_eq!(answer["id"], 1);
    }
}

#[tokio::test]
async fn subscription_not_accepting_sse_is_406() {
    let server = HttpFixture::start().await;
    let request = listen(1, json!({"toolsListChanged": true})).accept("application/json");
    assert_eq!(server.send(&request).await.status(), 406);
}

#[tokio::test]
async fn closing_stream_ends_subscription() {
    // SUB-10, HTTP26-32: the server frees everything that belongs to it.
    let server = HttpFixture::start().await;
    let feeds = || format!("{:?}", server.server.endpoint().profile().bus);
    let before = feeds();
    let mut stream = server.open(listen(1, json!({"toolsListChanged": true}))).await;
    acknowledged(&mut stream, json!(1)).await;
    assert_ne!(feeds(), before);
    stream.cut();
    within(async {
        while feeds() != before {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// Reads until `wanted` has arrived.
async fn read_until(stream: &mut TcpStream, wanted: &str) -> String {
    let mut read = Vec::new();
    within(async {
        while !String::from_utf8_lossy(&read).contains(wanted) {
            assert_ne!(stream.read_buf(&mut read).await.unwrap(), 0, "the stream has ended");
        }
    })
    .await;
    String::from_utf8(read).unwrap()
}

#[tokio::test]
async fn subscription_after_pipelined_call_ends_with_connection() {
    // HTTP26-26
    let server = HttpFixture::start().await;
    let mut client = TcpStream::connect(server.address()).await.unwrap();
    let call = Request::call("echo", json!({"text": "before"}));
    // Both requests in one write: the first response must not be lost.
    let both = [call.bytes(), listen(1, json!({"toolsListChanged": true})).bytes()].concat();
    client.write_all(&both).await.unwrap();
    let said = read_until(&mut client, "acknowledged").await;
    assert!(said.contains("before"), "{said}");
    let (_, head) =
        said.split_once("HTTP/1.1 200 OK").unwrap().1.split_once("HTTP/1.1 200 OK").unwrap();
    for header in ["transfer-encoding: chunked", "connection: close", "date: ", "text/event-stream"]
    {
        assert!(head.contains(header), "{header}: {head}");
    }
    let ended = async {
        let mut rest = String::new();
        client.read_to_string(&mut rest).await.unwrap();
        rest
    };
    let (rest, ()) = within(async { tokio::join!(ended, server.serving.shutdown()) }).await;
    assert!(rest.ends_with("\r\n0\r\n\r\n"), "{rest}");
}

#[tokio::test]
async fn http_1_0_client_gets_unchunked_stream() {
    let server = HttpFixture::start().await;
    let mut client = TcpStream::connect(server.address()).await.unwrap();
    let bytes = listen(1, json!({"toolsListChanged": true})).bytes();
    let old = String::from_utf8(bytes).unwrap().replacen("HTTP/1.1", "HTTP/1.0", 1);
    client.write_all(old.as_bytes()).await.unwrap();
    let said = read_until(&mut client, "acknowledged").await;
    assert!(!said.contains("chunked"), "{said}");
}

#[tokio::test]
async fn client_writing_endlessly_on_stream_is_disconnected() {
    let server = HttpFixture::start().await;
    let mut client = TcpStream::connect(server.address()).await.unwrap();
    client.write_all(&listen(1, json!({"toolsListChanged": true})).bytes()).await.unwrap();
    read_until(&mut client, "acknowledged").await;
    within(async { while client.write_all(&[b'x'; 4096]).await.is_ok() {} }).await;
}
