//! Tokens that do not work, hostile text and limits.

use std::{sync::Arc, time::Duration};

use outlive::{
    client::request::result_text,
    people::AnswerLinks,
    server::{Principal, SealKeys, Server, tasks::TaskConfig},
    store::MemoryStore,
};
use serde_json::json;

use crate::support::{RESULT, Reply, Site, VALID, target};

/// Checks that a reply is the page for every token that does not open.
#[track_caller]
fn is_unknown(reply: &Reply, unknown: &Reply) {
    assert_eq!((reply.status, &reply.body), (404, &unknown.body));
    reply.has("<h1>This link does not work</h1>");
}

#[tokio::test]
async fn used_link_looks_like_an_unknown_one() {
    let site = Site::start().await;
    let asked = site.ask("deploy", target()).await;
    let digest = site.get(&asked.path).await.digest();
    let body = format!("digest={digest}&action=accept&{VALID}");
    assert_eq!(site.send("POST", &asked.path, &body).await.status, 200);
    let unknown = site.get("/answer/x").await;
    is_unknown(&site.send("POST", &asked.path, &body).await, &unknown);
    is_unknown(&site.get(&asked.path).await, &unknown);
}

#[tokio::test]
async fn link_of_ended_task_looks_like_an_unknown_one() {
    let site = Site::start().await;
    let mut asked = site.ask("deploy", target()).await;
    let digest = site.get(&asked.path).await.digest();
    asked.handle.cancel().await.expect("the task is cancelled");
    let unknown = site.get("/answer/x").await;
    is_unknown(&site.get(&asked.path).await, &unknown);
    let body = format!("digest={digest}&action=accept&{VALID}");
    is_unknown(&site.send("POST", &asked.path, &body).await, &unknown);
}

#[tokio::test]
async fn link_of_expired_request_looks_like_an_unknown_one() {
    let site = Site::start().await;
    let asked = site.ask("timed", json!({})).await;
    let digest = site.get(&asked.path).await.digest();
    site.wall.advance(Duration::from_secs(61));
    let unknown = site.get("/answer/x").await;
    is_unknown(&site.get(&asked.path).await, &unknown);
    let body = format!("digest={digest}&action=accept&{VALID}");
    is_unknown(&site.send("POST", &asked.path, &body).await, &unknown);
}

#[tokio::test]
async fn changed_token_looks_like_an_unknown_one() {
    let site = Site::start().await;
    let asked = site.ask("deploy", target()).await;
    let unknown = site.get("/answer/x").await;
    let start = "/answer/".len();
    for at in (start..asked.path.len()).step_by(7) {
        let mut path = asked.path.clone();
        let other = if &path[at..=at] == "A" { "B" } else { "A" };
        path.replace_range(at..=at, other);
        is_unknown(&site.get(&path).await, &unknown);
    }
    for path in [format!("{}A", asked.path), format!("{}/", asked.path), "/answer/".to_owned()] {
        is_unknown(&site.get(&path).await, &unknown);
    }
    assert_eq!(site.get(&asked.path).await.status, 200);
}

#[tokio::test]
async fn random_tokens_get_one_text() {
    let site = Site::start().await;
    let unknown = site.get("/answer/x").await;
    for _ in 0..1_000 {
        let mut bytes = [0; 48];
        getrandom::fill(&mut bytes).expect("random bytes");
        let token: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        is_unknown(&site.get(&format!("/answer/{token}")).await, &unknown);
    }
}

#[tokio::test]
async fn token_of_another_server_looks_like_an_unknown_one() {
    let site = Site::start().await;
    let asked = site.ask("deploy", target()).await;
    let other = Server::builder("shop", "1")
        .seal_keys(SealKeys::new([8; 32]))
        .tasks(TaskConfig::new(Arc::new(MemoryStore::new())))
        .build()
        .expect("the server is valid");
    let token = asked.path.trim_start_matches("/answer/");
    assert!(AnswerLinks::new(&other).open(token).await.expect("the store responds").is_none());
}

#[tokio::test]
async fn form_of_one_task_cannot_answer_another() {
    let site = Site::start().await;
    let one = site.ask("deploy", target()).await;
    let two = site.ask("deploy", json!({"target": "bank:1"})).await;
    let digest = site.get(&one.path).await.digest();
    let body = format!("digest={digest}&action=accept&{VALID}");
    let page = site.send("POST", &two.path, &body).await;
    assert_eq!(page.status, 409);
    page.has("bank:1");
    assert_eq!(site.open(&one.id).await, ["approve"]);
    assert_eq!(site.open(&two.id).await, ["approve"]);
    assert_eq!(site.send("POST", &one.path, &body).await.status, 200);
    let mut handle = one.handle;
    assert_eq!(result_text(&handle.wait().await.expect("the task ends")), RESULT);
    assert_eq!(site.open(&two.id).await, ["approve"], "the other task still waits");
}

#[tokio::test]
async fn request_for_the_caller_has_no_link() {
    let site = Site::start().await;
    let (_handle, id) = site.call("guarded", json!({})).await;
    let links = &site.links;
    let token = links.create(Principal::LOCAL.key(), &id, "approve").await;
    assert_eq!(token.expect("the store responds"), None);
}

#[tokio::test]
async fn link_is_created_only_for_the_principal_of_the_task() {
    let site = Site::start().await;
    let (_handle, id) = site.call("deploy", target()).await;
    for (principal, name) in [("anonymous", "approve"), (Principal::LOCAL.key(), "other")] {
        let token = site.links.create(principal, &id, name).await.expect("the store responds");
        assert_eq!(token, None, "{principal} {name}");
    }
}

#[tokio::test]
async fn oversized_form_is_rejected_unread() {
    let site = Site::start().await;
    let asked = site.ask("deploy", target()).await;
    let body = format!("field.reason={}", "x".repeat(300 << 10));
    assert_eq!(site.send("POST", &asked.path, &body).await.status, 413);
    assert_eq!(site.open(&asked.id).await, ["approve"]);
}

#[tokio::test]
async fn other_methods_are_rejected() {
    let site = Site::start().await;
    let asked = site.ask("deploy", target()).await;
    for method in ["PUT", "DELETE", "PATCH", "OPTIONS"] {
        let reply = site.send(method, &asked.path, "").await;
        assert_eq!(
            (reply.status, reply.header("allow")),
            (405, Some("GET, HEAD, POST")),
            "{method}"
        );
    }
    assert_eq!(site.open(&asked.id).await, ["approve"]);
}

#[tokio::test]
async fn opening_a_link_decides_nothing() {
    let site = Site::start().await;
    let asked = site.ask("deploy", target()).await;
    for _ in 0..100 {
        assert_eq!(site.get(&asked.path).await.status, 200);
        let head = site.send("HEAD", &asked.path, "").await;
        assert_eq!((head.status, head.body.as_str()), (200, ""));
        let query = format!("{}?action=accept&{VALID}", asked.path);
        assert_eq!(site.get(&query).await.status, 200);
    }
    assert_eq!(site.open(&asked.id).await, ["approve"]);
}
