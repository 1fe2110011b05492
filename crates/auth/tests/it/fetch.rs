//! Tests of the fetcher.

use std::time::Duration;

use http::HeaderMap;
use outlive_auth::fetch::{FetchErrorKind, Fetcher, NetworkPolicy};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

/// Starts a server that sends the next response on each connection. Returns the requests.
async fn answering(answers: Vec<String>) -> (String, tokio::task::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let asked = tokio::spawn(async move {
        let mut asked = Vec::new();
        for answer in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut bytes = vec![0; 4096];
            let read = stream.read(&mut bytes).await.unwrap();
            asked.push(String::from_utf8_lossy(&bytes[..read]).into_owned());
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
        asked
    });
    (url, asked)
}

fn reply(head: &str, body: &str) -> String {
    format!("HTTP/1.1 {head}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

#[tokio::test]
async fn fetcher_gets_documents_and_posts_forms() {
    let answers = vec![reply("200 OK", r#"{"a":1}"#), reply("400 Bad Request", r#"{"error":"x"}"#)];
    let (url, asked) = answering(answers).await;
    let fetch = Fetcher::new();
    let document: Value =
        fetch.get(&format!("{url}/d?q=1"), HeaderMap::new()).await.unwrap().json().unwrap();
    assert_eq!(document, json!({"a": 1}));
    let refused = fetch.post_form(&url, HeaderMap::new(), [("a", "b c")]).await.unwrap();
    assert_eq!(refused.status, 400);
    assert!(matches!(refused.json::<Value>().unwrap_err().kind(), FetchErrorKind::Status(400)));
    let asked = asked.await.unwrap();
    assert!(asked[0].starts_with("GET /d?q=1 HTTP/1.1\r\n"), "{asked:?}");
    assert!(asked[1].ends_with("\r\n\r\na=b%20c"), "{asked:?}");
}

#[tokio::test]
async fn redirect_is_followed_within_its_origin_only() {
    let answers = vec![
        reply("302 Found\r\nlocation: /there", ""),
        reply("200 OK", "{}"),
        reply("302 Found\r\nlocation: http://127.0.0.1:1/x?secret=1", ""),
        reply("307 Temporary Redirect\r\nlocation: /there", ""),
    ];
    let (url, asked) = answering(answers).await;
    let fetch = Fetcher::new();
    assert_eq!(fetch.get(&url, HeaderMap::new()).await.unwrap().status, 200);
    let refused = fetch.get(&url, HeaderMap::new()).await.unwrap_err();
    assert!(matches!(refused.kind(), FetchErrorKind::Redirected(_)));
    let said = refused.to_string();
    assert!(said.contains("another origin") && !said.contains("secret"), "{said}");
    // A form is not sent to the target of a redirect.
    assert_eq!(fetch.post_form(&url, HeaderMap::new(), [("a", "b")]).await.unwrap().status, 307);
    assert_eq!(asked.await.unwrap().len(), 4);
}

// ACL-24
#[tokio::test]
async fn plain_http_is_allowed_for_loopback_only() {
    let fetch = Fetcher::new().network_policy(NetworkPolicy::Anywhere);
    let refused = fetch.get("http://example.com/x?token=abc", HeaderMap::new()).await.unwrap_err();
    assert!(matches!(refused.kind(), FetchErrorKind::Insecure));
    let said = refused.to_string();
    assert!(said.contains("https") && !said.contains("abc"), "{said}");
    assert!(fetch.check("https://example.com").is_ok());
    assert!(fetch.check("http://127.0.0.1:1/x").is_ok());
    for url in ["ftp://a.b", "javascript:alert(1)", "file:///etc/passwd", "https://u:p@a.b/"] {
        assert!(matches!(fetch.check(url).unwrap_err().kind(), FetchErrorKind::Url(_)), "{url}");
    }
}

// ACL-24
#[tokio::test]
async fn blocked_address_is_not_connected_to() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let url = format!("http://127.0.0.1:{port}/");
    let refused = Fetcher::new().allow_http(true).get(&url, HeaderMap::new()).await.unwrap_err();
    assert_eq!(refused.refused_address(), Some("127.0.0.1".parse().unwrap()));
    assert!(refused.to_string().contains("network_policy"), "{refused}");
    for (host, reach) in [("169.254.169.254", NetworkPolicy::Local), ("[::]", NetworkPolicy::Local)]
    {
        let fetch = Fetcher::new().allow_http(true).network_policy(reach);
        let refused = fetch.get(&format!("http://{host}:{port}/"), HeaderMap::new()).await;
        assert!(refused.unwrap_err().refused_address().is_some(), "{host}");
    }
    let connection = tokio::time::timeout(Duration::ZERO, listener.accept()).await;
    assert!(connection.is_err(), "no connection is expected");
}

#[tokio::test]
async fn response_that_is_too_large_or_not_json_is_rejected() {
    let large = "x".repeat(2000);
    let answers = vec![reply("200 OK", &large), reply("200 OK", r#"{"token":"hunter2""#)];
    let (url, _asked) = answering(answers).await;
    let fetch = Fetcher::new().max_bytes(1000);
    let refused = fetch.get(&url, HeaderMap::new()).await.unwrap_err();
    assert!(refused.to_string().contains("max_bytes"), "{refused}");
    let broken = fetch.get(&url, HeaderMap::new()).await.unwrap();
    let said = broken.json::<Value>().unwrap_err().to_string();
    assert!(said.contains("line 1") && !said.contains("hunter2"), "{said}");
    assert!(!format!("{broken:?}").contains("hunter2"));
}
