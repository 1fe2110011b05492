//! Listen addresses: loopback by default, public only with authentication or on request.

use std::{io::ErrorKind, time::Duration};

use outlive::server::{
    Server,
    http::{HttpConfig, StaticTokens},
};
use serde_json::json;

use crate::support::http::{Connection, HttpFixture, Request};

fn server() -> Server {
    Server::builder("addresses", "1").build().unwrap()
}

#[tokio::test]
async fn public_address_without_authenticator_is_rejected() {
    // HTTP26-03, SEC-05
    for address in ["0.0.0.0:0", "[::]:0"] {
        let error = server().serve_http(address, HttpConfig::new()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PermissionDenied);
        let text = error.to_string();
        for remedy in ["`authenticator`", "127.0.0.1", "`allow_anonymous`"] {
            assert!(text.contains(remedy), "{text}");
        }
    }
}

#[tokio::test]
async fn public_address_with_authenticator_or_allow_anonymous_is_served() {
    let tokens = StaticTokens::new().with("anna", "annas-token-0123456789");
    for config in [HttpConfig::new().allow_anonymous(true), HttpConfig::new().authenticator(tokens)]
    {
        let serving = server().serve_http("0.0.0.0:0", config).await.unwrap();
        assert_eq!(serving.url(), format!("http://localhost:{}/mcp", serving.address().port()));
        // The server is reached under host names that it does not know.
        let list = Request::modern("server/discover").header("host", "mcp.example");
        let address = ([127, 0, 0, 1], serving.address().port()).into();
        let response =
            Connection::open(address).await.send(&list.bearer("annas-token-0123456789")).await;
        assert_eq!(response.status(), 200);
        // Requests from other origins are still rejected.
        let page = Request::modern("server/discover").header("origin", "https://evil.example");
        assert_eq!(Connection::open(address).await.send(&page).await.status(), 403);
    }
}

#[tokio::test]
async fn unusable_address_fails_with_remedy() {
    let first = server().serve_http("127.0.0.1:0", HttpConfig::new()).await.unwrap();
    let port = first.address().port();
    let error = server().serve_http(first.address(), HttpConfig::new()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AddrInUse);
    let text = error.to_string();
    assert!(
        text.contains(&format!("port {port} is in use")) && text.contains("choose another"),
        "{text}"
    );

    // An address reserved for documentation; no machine has it.
    let config = HttpConfig::new().allow_anonymous(true);
    let error = server().serve_http("203.0.113.7:0", config).await.unwrap_err();
    assert!(error.to_string().contains("203.0.113.7 is not an address of this machine"), "{error}");
    assert!(server().serve_http("no such host", HttpConfig::new()).await.is_err());
}

#[tokio::test]
async fn endpoint_path_is_configurable() {
    // HTTP26-01
    let server = HttpFixture::with(HttpConfig::new().path("/tools/v1")).await;
    assert!(server.serving.url().ends_with("/tools/v1"));
    let list = Request::modern("tools/list");
    assert_eq!(server.send(list.clone().target("/tools/v1")).await.status(), 200);
    let elsewhere = server.send(list).await;
    assert_eq!(elsewhere.status(), 404);
    assert!(elsewhere.json()["error"]["message"].as_str().unwrap().contains("/tools/v1"));
}

#[tokio::test]
async fn idle_connection_is_closed() {
    let server =
        HttpFixture::with(HttpConfig::new().idle_timeout(Duration::from_millis(200))).await;
    let mut silent = server.connect().await;
    let mut slow = server.connect().await;
    slow.write(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n").await;
    let mut idle = server.connect().await;
    assert_eq!(idle.send(&Request::modern("tools/list")).await.status(), 200);
    silent.write(b"").await;
    for connection in [silent, slow, idle] {
        connection.closed().await;
    }
    // A connection that waits for a response is not idle.
    let call = Request::call("wait", json!({"key": "w"}));
    let mut waiting = server.begin(&call).await;
    server.world.started("w").await;
    server.connect().await.closed().await;
    server.world.release("w");
    assert_eq!(waiting.response(&call).await.text(), "waited w");
}

#[tokio::test]
async fn connection_over_limit_waits_for_free_slot() {
    // SEC-06
    let server = HttpFixture::with(HttpConfig::new().max_connections(1)).await;
    let mut first = server.connect().await;
    assert_eq!(first.send(&Request::modern("tools/list")).await.status(), 200);
    let call = Request::call("wait", json!({"key": "second"}));
    let mut second = server.begin(&call).await;
    for _ in 0..10 {
        assert_eq!(first.send(&Request::modern("tools/list")).await.status(), 200);
    }
    assert!(!server.world.has_started("second"), "the connection waits");
    drop(first);
    server.world.started("second").await;
    server.world.release("second");
    assert_eq!(second.response(&call).await.text(), "waited second");
}
