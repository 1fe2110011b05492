//! Principals and their upstream connections.

use std::time::Duration;

use outlive::{
    client::{
        Client, Version,
        input::{InputCallbacks, InputResponse},
    },
    server::http::{HttpConfig, HttpServer, StaticTokens},
};
use outlive_gateway::Isolation;
use serde_json::json;

use crate::support::{Served, eventually, process, text};

/// Colors that the users of both tokens choose.
const COLORS: [&str; 2] = ["red", "blue"];

/// Serves a gateway over HTTP to the users of two tokens.
async fn two_clients(served: &Served) -> (HttpServer, Client, Client) {
    let tokens = ["token-of-ada-0123456789", "token-of-bob-0123456789"];
    let known = StaticTokens::new().with("ada", tokens[0]).with("bob", tokens[1]);
    let config = HttpConfig::new().authenticator(known);
    let serving = served.server.serve_http("127.0.0.1:0", config).await.unwrap();
    let url = serving.url();
    let mut clients = Vec::new();
    for (token, color) in tokens.into_iter().zip(COLORS) {
        let user = InputCallbacks::new().form(move |_| async move {
            tokio::time::sleep(Duration::from_millis(20)).await;
            InputResponse::accept(json!({"color": color}))
        });
        let builder = Client::builder("test", "1").token(token).input_handler(user);
        let builder = builder.protocol_version(Version::V2025_11_25);
        let client = builder.connect(url.as_str()).await.unwrap();
        clients.push(client);
    }
    let second = clients.pop().unwrap();
    (serving, clients.pop().unwrap(), second)
}

async fn pid(client: &Client) -> String {
    text(&client.call_tool("child__pid", json!({})).await.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn principals_have_processes_of_their_own() {
    let served = Served::new([process("child", "serves", None)]);
    let (_serving, ada, bob) = two_clients(&served).await;
    let (first, second) = (pid(&ada).await, pid(&bob).await);
    assert_ne!(first, second);
    assert_eq!(first, pid(&ada).await);
    served.gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn shared_upstream_has_one_process() {
    let served = Served::new([process("child", "serves", None).isolation(Isolation::Shared)]);
    let (_serving, ada, bob) = two_clients(&served).await;
    assert_eq!(pid(&ada).await, pid(&bob).await);
    served.gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_input_requests_of_two_principals_never_cross() {
    let child = process("child", "serves", None).protocol_version(Version::V2025_06_18);
    let served = Served::new([child]);
    let (_serving, ada, bob) = two_clients(&served).await;
    for _ in 0..10 {
        let calls = tokio::join!(
            ada.call_tool("child__form", json!({})),
            bob.call_tool("child__form", json!({})),
            ada.call_tool("child__form", json!({})),
            bob.call_tool("child__form", json!({})),
        );
        for (result, color) in
            [(calls.0, "red"), (calls.1, "blue"), (calls.2, "red"), (calls.3, "blue")]
        {
            assert_eq!(text(&result.unwrap()), format!("painted \"{color}\""));
        }
    }
    served.gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn session_has_a_process_of_its_own_that_stops_with_the_session() {
    let child = process("child", "serves", None).isolation(Isolation::Session);
    let served = Served::new([child]);
    let (serving, ada, bob) = two_clients(&served).await;
    let builder = Client::builder("test", "1").token("token-of-ada-0123456789");
    let builder = builder.protocol_version(Version::V2025_06_18);
    let second = builder.connect(serving.url().as_str()).await.unwrap();
    let pids = [pid(&ada).await, pid(&bob).await, pid(&second).await];
    assert!(pids[0] != pids[1] && pids[0] != pids[2] && pids[1] != pids[2], "{pids:?}");
    assert_eq!(pid(&second).await, pids[2]);
    second.close().await;
    eventually("the stop of one process", async || {
        served.gateway.status().upstreams[0].processes == 2
    })
    .await;
    assert_eq!([pid(&ada).await, pid(&bob).await], pids[..2]);
    served.gateway.shutdown().await;
}
