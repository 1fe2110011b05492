//! Tests of registrations and client documents.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::mpsc};

use crate::shared::site::{Site, answer};
use crate::support::{Browser, LOOPBACK, World, asked};

async fn register(world: &World, body: &Value) -> crate::support::Got {
    Browser::default().post_json(&format!("{}/register", world.base), body).await
}

#[tokio::test]
async fn registered_client_is_public() {
    let world = World::new().await;
    let asked = json!({
        "client_name": "App", "redirect_uris": [LOOPBACK, "https://app.example/cb"],
        "token_endpoint_auth_method": "client_secret_post", "grant_types": ["authorization_code"],
    });
    let got = register(&world, &asked).await;
    assert_eq!((got.status, got.header("access-control-allow-origin")), (201, Some("*")));
    assert_eq!(got.header("cache-control"), Some("no-store"));
    let said = got.json();
    assert_eq!(said["token_endpoint_auth_method"], "none");
    assert!(said.get("client_secret").is_none());
    assert_eq!(said["redirect_uris"], asked["redirect_uris"]);
    // The proxy stores nothing for a registration.
    assert!(world.logins.written.lock().unwrap().is_empty());
}

#[tokio::test]
async fn unsafe_registration_is_rejected() {
    let world = World::new().await;
    let many: Vec<String> = (0..9).map(|at| format!("https://app.example/{at}")).collect();
    let long = format!("https://app.example/{}", "x".repeat(600));
    for (body, error) in [
        (json!({}), "invalid_redirect_uri"),
        (json!({"redirect_uris": []}), "invalid_redirect_uri"),
        (json!({"redirect_uris": ["http://app.example/cb"]}), "invalid_redirect_uri"),
        (json!({"redirect_uris": ["javascript:alert(1)"]}), "invalid_redirect_uri"),
        (json!({"redirect_uris": ["app://callback"]}), "invalid_redirect_uri"),
        (json!({"redirect_uris": ["https://a.example/#x"]}), "invalid_redirect_uri"),
        (json!({"redirect_uris": ["https://u:p@a.example/"]}), "invalid_redirect_uri"),
        (
            json!({"redirect_uris": ["https://a.example/", "http://b.example/"]}),
            "invalid_redirect_uri",
        ),
        (json!({"redirect_uris": many}), "invalid_redirect_uri"),
        (json!({"redirect_uris": [long]}), "invalid_redirect_uri"),
        (
            json!({"redirect_uris": [LOOPBACK], "client_name": "x".repeat(200)}),
            "invalid_client_metadata",
        ),
        (
            json!({"redirect_uris": [LOOPBACK], "grant_types": ["password"]}),
            "invalid_client_metadata",
        ),
        (
            json!({"redirect_uris": [LOOPBACK], "response_types": ["token"]}),
            "invalid_client_metadata",
        ),
        (json!({"redirect_uris": "https://a.example/"}), "invalid_client_metadata"),
        (json!([]), "invalid_client_metadata"),
    ] {
        let got = register(&world, &body).await;
        assert_eq!((got.status, got.text("error").as_str()), (400, error), "{body}");
    }
    let huge = json!({"redirect_uris": [LOOPBACK], "software_statement": "x".repeat(20_000)});
    assert_eq!(register(&world, &huge).await.status, 413);
}

#[tokio::test]
async fn client_with_a_document_needs_no_registration() {
    let world = World::new().await;
    let site = Site::start(|base, seen| {
        let id = format!("{base}{}", seen.path);
        match seen.path.as_str() {
            "/client.json" => answer(
                200,
                json!({"client_id": id, "client_name": "Published", "redirect_uris": [LOOPBACK]}),
            ),
            "/other.json" => answer(
                200,
                json!({"client_id": format!("{base}/client.json"), "redirect_uris": [LOOPBACK]}),
            ),
            _ => answer(404, Value::Null),
        }
    })
    .await;
    let id = format!("{}/client.json", site.url);
    let page = Browser::default().get(&world.authorize(&id, LOOPBACK, &[])).await;
    let host = site.url.strip_prefix("http://").unwrap();
    assert!(page.body.contains("Published") && page.body.contains(&format!("published by {host}")));
    let got = world.token(&world.code(&id, LOOPBACK).await, &id, &[]).await;
    assert_eq!(got.status, 200, "{}", got.body);
    assert_eq!(site.lines(), ["GET /client.json"], "the document is cached");
    for (id, uri) in [
        (format!("{}/other.json", site.url), LOOPBACK),
        (format!("{}/nothing.json", site.url), LOOPBACK),
        (format!("{}/x/../client.json", site.url), LOOPBACK),
        (format!("{}/client.json?x", site.url), LOOPBACK),
        (site.url.clone(), LOOPBACK),
        (format!("{}/{}", site.url, "x".repeat(300)), LOOPBACK),
        ("file:///etc/passwd".to_owned(), LOOPBACK),
        ("https://127.0.0.1:1/client.json".to_owned(), LOOPBACK),
        (id.clone(), "https://evil.example/cb"),
    ] {
        let got = Browser::default().get(&world.authorize(&id, uri, &[])).await;
        assert_eq!((got.status, got.header("location")), (400, None), "{id} {uri}");
    }
}

#[tokio::test]
async fn loopback_redirect_uri_may_use_another_port() {
    let world = World::new().await;
    let id = world.register("http://127.0.0.1:1/callback").await;
    let uri = "http://127.0.0.1:9/callback";
    let back = Browser::default().log_in(&world.authorize(&id, uri, &[])).await;
    assert!(back.starts_with(uri), "{back}");
    let code = asked(&back, "code").unwrap();
    assert_eq!(world.token(&code, &id, &[("redirect_uri", uri)]).await.status, 200);
}

/// Starts a server on every loopback address that accepts connections and never responds. Returns
/// its port, and a message for each connection.
async fn tarpit() -> (u16, mpsc::Receiver<()>) {
    let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, connections) = mpsc::channel(64);
    tokio::spawn(async move {
        let mut open = Vec::new();
        while let Ok((stream, _)) = listener.accept().await {
            open.push(stream);
            let _ = sender.send(()).await;
        }
    });
    (port, connections)
}

async fn published() -> Site {
    Site::start(|_, seen| {
        let id = format!("http://{}{}", seen.header("host").unwrap(), seen.path);
        let document =
            json!({"client_id": id, "client_name": "Published", "redirect_uris": [LOOPBACK]});
        answer(200, document)
    })
    .await
}

#[tokio::test]
async fn slow_documents_do_not_block_other_logins() {
    let (world, site) = (World::new().await, published().await);
    let (port, mut connections) = tarpit().await;
    // More hosts than a caller has slots, and several documents of one host.
    let hosts = (2..=21).map(|last| format!("http://127.0.0.{last}:{port}/client.json"));
    let same = (0..10).map(|at| format!("http://127.0.0.22:{port}/{at}.json"));
    for id in hosts.chain(same) {
        let url = world.authorize(&id, LOOPBACK, &[]);
        tokio::spawn(async move { Browser::default().get(&url).await });
    }
    // All slots of the caller are in use.
    for at in 0..16 {
        let taken = tokio::time::timeout(Duration::from_secs(20), connections.recv()).await;
        assert!(matches!(taken, Ok(Some(()))), "{at} documents are fetched at once");
    }
    let id = format!("{}/client.json", site.url);
    let page = Browser::default().get(&world.authorize(&id, LOOPBACK, &[])).await;
    assert_eq!(page.status, 200, "{}", page.body);
    assert!(page.body.contains("Published"));
}

#[tokio::test]
async fn documents_of_one_host_do_not_fill_the_cache() {
    let (world, site) = (World::new().await, published().await);
    let read = async |id: &str| {
        let page = Browser::default().get(&world.authorize(id, LOOPBACK, &[])).await;
        assert_eq!(page.status, 200, "{id}: {}", page.body);
    };
    for at in 0..256 {
        read(&format!("{}/made-up-{at}.json", site.url)).await;
    }
    // The same site under another name.
    let id = format!("{}/client.json", site.url.replace("127.0.0.1", "localhost"));
    for _ in 0..3 {
        read(&id).await;
    }
    assert_eq!(site.all("/client.json").len(), 1, "the document is cached");
}
