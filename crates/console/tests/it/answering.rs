//! Responses that a person sends from the answer page.

use outlive::client::request::result_text;

use crate::support::{Asked, RESULT, Site, VALID, target};

async fn result(asked: Asked) -> String {
    let Asked { mut handle, .. } = asked;
    result_text(&handle.wait().await.expect("the task ends"))
}

#[tokio::test]
async fn valid_answer_is_stored_and_the_task_continues() {
    let site = Site::start().await;
    let asked = site.ask("deploy", target()).await;
    let sent = site.submit(&asked.path, "accept", VALID).await;
    assert_eq!(sent.status, 200);
    sent.has("<h1>Answer sent</h1>");
    assert_eq!(result(asked).await, RESULT);
}

#[tokio::test]
async fn declined_and_cancelled_requests_reach_the_handler_without_values() {
    let site = Site::start().await;
    for (action, title, expected) in [
        ("decline", "<h1>Declined</h1>", "declined"),
        ("cancel", "<h1>Cancelled</h1>", "cancelled"),
    ] {
        let asked = site.ask("deploy", target()).await;
        // Values of the form do not matter, valid or not.
        let sent = site.submit(&asked.path, action, "field.replicas=many").await;
        assert_eq!(sent.status, 200);
        sent.has(title);
        assert_eq!(result(asked).await, expected);
    }
}

#[tokio::test]
async fn invalid_answer_shows_errors_keeps_values_and_stores_nothing() {
    let site = Site::start().await;
    let asked = site.ask("deploy", target()).await;
    let wrong =
        "field.reason=%3Cok%3E&field.replicas=10&field.share=half&field.size=&field.contact=ops";
    let page = site.submit(&asked.path, "accept", wrong).await;
    assert_eq!(page.status, 422);
    for part in [
        "<a href=\"#field1\">replicas must be at most 9</a>",
        "This field must be at most 9",
        "This field must be a number",
        "<a href=\"#field3-0\">sure is required</a>",
        "<a href=\"#field4\">size is required</a>",
        "This field must be an e-mail address",
        "value=\"&lt;ok&gt;\"",
        "value=\"half\"",
    ] {
        page.has(part);
    }
    assert!(!page.body.contains("#field0\""), "a valid field has no error: {}", page.body);
    assert_eq!(site.open(&asked.id).await, ["approve"]);
    assert_eq!(site.submit(&asked.path, "accept", VALID).await.status, 200);
    assert_eq!(result(asked).await, RESULT);
}

#[tokio::test]
async fn submission_without_a_known_action_stores_nothing() {
    let site = Site::start().await;
    let asked = site.ask("deploy", target()).await;
    for action in ["", "approve"] {
        let page = site.submit(&asked.path, action, VALID).await;
        assert_eq!(page.status, 400);
        page.has("Choose one of the buttons");
    }
    assert_eq!(site.open(&asked.id).await, ["approve"]);
}

#[tokio::test]
async fn submission_without_the_digest_of_the_page_stores_nothing() {
    let site = Site::start().await;
    let asked = site.ask("deploy", target()).await;
    for digest in ["", "digest=&", "digest=00000000000000000000000000000000&"] {
        let body = format!("{digest}action=accept&{VALID}");
        let page = site.send("POST", &asked.path, &body).await;
        assert_eq!(page.status, 409);
        page.has("The request has changed");
        page.has("value=\"as planned\"");
    }
    assert_eq!(site.open(&asked.id).await, ["approve"]);
}

#[tokio::test]
async fn concurrent_submissions_store_one_answer() {
    let site = Site::start().await;
    let asked = site.ask("deploy", target()).await;
    let digest = site.get(&asked.path).await.digest();
    let accept = format!("digest={digest}&action=accept&{VALID}");
    let decline = format!("digest={digest}&action=decline");
    let (one, two) = tokio::join!(
        site.send("POST", &asked.path, &accept),
        site.send("POST", &asked.path, &decline)
    );
    let mut statuses = [one.status, two.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 404]);
    let expected = if one.status == 200 { RESULT } else { "declined" };
    assert_eq!(result(asked).await, expected);
}

#[tokio::test]
async fn opened_address_is_accepted_without_content() {
    let site = Site::start().await;
    let asked = site.ask("visit", serde_json::json!({})).await;
    let page = site.get(&asked.path).await;
    page.has("I have opened the address");
    assert_eq!(site.submit(&asked.path, "accept", "").await.status, 200);
    assert_eq!(result(asked).await, "Accepted(())");
}
