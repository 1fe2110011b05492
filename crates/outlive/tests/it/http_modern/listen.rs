//! `subscriptions/listen`: who hears of changes, and of which.

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

/// The next message must be the acknowledgement of this subscription. Returns what is honoured.
async fn acknowledged(stream: &mut Stream, id: Value) -> Value {
    let ack = stream.message().await;
    assert_eq!(ack["method"], "notifications/subscriptions/acknowledged", "{ack}");
    assert_eq!(ack["params"]["_meta"], json!({ID: id}));
    ack["params"]["notifications"].clone()
}

/// The next message must be this change.
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
async fn a_subscription_is_acknowledged_first_and_under_its_own_id() {
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
async fn only_what_was_asked_for_is_told() {
    // SUB-02
    let server = HttpFixture::start().await;
    let wish = json!({"toolsListChanged": false, "promptsListChanged": true, "resourceSubscriptions": ["mem://b"]});
    let mut stream = server.open(listen(1, wish)).await;
    let honoured = acknowledged(&mut stream, json!(1)).await;
    assert_eq!(honoured, json!({"promptsListChanged": true, "resourceSubscriptions": ["mem://b"]}));

    // A second stream that hears everything tells when the first could have heard it.
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
async fn a_change_is_told_to_each_subscription_once() {
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
        // Two changes at once are one piece of news.
        server.server.add_tool(Tool::new(format!("a{round}"), async || "")).unwrap();
        server.server.add_tool(Tool::new(format!("b{round}"), async || "")).unwrap();
        for (index, stream) in streams.iter_mut().enumerate() {
            changed(stream, index + 1, TOOLS).await;
        }
    }
}

#[tokio::test]
async fn what_a_server_does_not_have_is_left_out_of_the_acknowledgement() {
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
    assert_eq!(honoured["resourceSubscriptions"], json!(["mem://a"]), "only what can be read");
}

#[tokio::test]
async fn a_subscription_to_nothing_stays_open_and_says_nothing() {
    // SUB-16
    let server = HttpFixture::start().await;
    let mut stream = server.open(listen(1, json!({}))).await;
    assert_eq!(acknowledged(&mut stream, json!(1)).await, json!({}));
    let mut witness = server.open(listen(2, json!({"toolsListChanged": true}))).await;
    acknowledged(&mut witness, json!(2)).await;
    server.server.remove_tool("echo");
    changed(&mut witness, 2, TOOLS).await;
    // The first message after all that is the end.
    let shutdown = server.serving.shutdown();
    let last = async {
        let last = stream.message().await;
        assert_eq!(last["result"]["_meta"][ID], 1, "{last}");
        stream.ended().await
    };
    within(async { tokio::join!(shutdown, last, witness.message()) }).await;
}

#[tokio::test]
async fn progress_and_log_lines_do_not_travel_on_a_subscription() {
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
async fn a_malformed_subscription_is_refused() {
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
async fn a_client_that_takes_no_stream_cannot_listen() {
    let server = HttpFixture::start().await;
    let request = listen(1, json!({"toolsListChanged": true})).accept("application/json");
    assert_eq!(server.send(&request).await.status(), 406);
}

#[tokio::test]
async fn closing_the_stream_ends_the_subscription() {
    // SUB-10, HTTP26-32: nothing of it stays behind.
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

/// Reads until this has come.
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
async fn a_stream_is_a_response_like_any_other_and_its_connection_ends_with_it() {
    // HTTP26-26
    let server = HttpFixture::start().await;
    let mut client = TcpStream::connect(server.address()).await.unwrap();
    let call = Request::call("echo", json!({"text": "before"}));
    // Both at once: what was said before must not be lost.
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
async fn a_client_that_knows_no_chunks_is_sent_none() {
    let server = HttpFixture::start().await;
    let mut client = TcpStream::connect(server.address()).await.unwrap();
    let bytes = listen(1, json!({"toolsListChanged": true})).bytes();
    let old = String::from_utf8(bytes).unwrap().replacen("HTTP/1.1", "HTTP/1.0", 1);
    client.write_all(old.as_bytes()).await.unwrap();
    let said = read_until(&mut client, "acknowledged").await;
    assert!(!said.contains("chunked"), "{said}");
}

#[tokio::test]
async fn whoever_goes_on_talking_on_a_stream_is_not_listened_to_for_ever() {
    let server = HttpFixture::start().await;
    let mut client = TcpStream::connect(server.address()).await.unwrap();
    client.write_all(&listen(1, json!({"toolsListChanged": true})).bytes()).await.unwrap();
    read_until(&mut client, "acknowledged").await;
    within(async { while client.write_all(&[b'x'; 4096]).await.is_ok() {} }).await;
}
