//! Forms: only a page of the same session, path and origin changes anything.

use std::time::Duration;

use crate::desk::{ADA, ANN, Ask, BEN, Desk};

const INPUT: &str = "/console/inputs/t1/%23approval";

async fn votes(desk: &Desk) -> usize {
    let reply = desk.send(Ask::get("/console/api/v1/inputs/t1/%23approval").bearer(ADA)).await;
    reply.json()["votes"].as_array().expect("votes").len()
}

#[tokio::test]
async fn approval_by_form_settles_the_request() {
    let desk = Desk::new();
    desk.approval("t1", "ann", &["ben"], 1).await;
    let ben = desk.signed_in(BEN).await;
    let inbox = ben.get("/console/").await;
    assert!(inbox.text().contains("href=\"./inputs/t1/%23approval\""), "{}", inbox.text());
    let reply = ben.submit(INPUT, "digest=digest-t1&action=accept").await;
    assert_eq!(
        (reply.status, reply.header("location")),
        (303, Some("../../inputs/t1/%23approval"))
    );
    assert_eq!(votes(&desk).await, 1);
    let page = ben.get(INPUT).await;
    assert!(!page.text().contains("value=\"accept\""), "{}", page.text());
}

#[tokio::test]
async fn form_without_a_valid_token_changes_nothing() {
    let desk = Desk::new();
    desk.approval("t1", "ann", &["ben"], 1).await;
    desk.approval("t2", "ann", &["ben"], 1).await;
    let (ben, other) = (desk.signed_in(BEN).await, desk.signed_in(BEN).await);
    let token = ben.get(INPUT).await.form_token();
    let other_path = ben.get("/console/inputs/t2/%23approval").await.form_token();
    let other_session = other.get(INPUT).await.form_token();
    let mut changed = token.clone();
    changed.replace_range(20..21, if &token[20..21] == "A" { "B" } else { "A" });
    for wrong in ["", "x", &other_path, &other_session, &changed] {
        let body = format!("form_token={wrong}&digest=digest-t1&action=accept");
        assert_eq!(ben.post(INPUT, &body).await.status, 403, "{wrong}");
    }
    assert_eq!(votes(&desk).await, 0);
}

#[tokio::test]
async fn form_that_was_opened_twelve_hours_ago_changes_nothing() {
    let (desk, hour) = (Desk::new(), Duration::from_secs(3_600));
    desk.approval("t1", "ann", &["ben"], 1).await;
    let ben = desk.signed_in(BEN).await;
    let token = ben.get(INPUT).await.form_token();
    let decide = |reason| format!("form_token={token}&digest=digest-t1&action=decline{reason}");
    desk.advance(11 * hour);
    // The session is used, so it stays open. The server reads the form and rejects its values.
    assert_eq!(ben.post(INPUT, &decide("")).await.status, 422);
    desk.advance(hour);
    let reply = ben.post(INPUT, &decide("&reason=not+now")).await;
    assert_eq!(reply.status, 403);
    assert!(reply.text().contains("Form expired"), "{}", reply.text());
    assert_eq!(votes(&desk).await, 0);
    let reply = ben.submit(INPUT, "digest=digest-t1&action=decline&reason=not+now").await;
    assert_eq!(reply.status, 303, "a new page in the same session");
}

#[tokio::test]
async fn form_of_another_origin_changes_nothing() {
    let desk = Desk::new();
    desk.approval("t1", "ann", &["ben"], 1).await;
    let ben = desk.signed_in(BEN).await;
    let token = ben.get(INPUT).await.form_token();
    let body = format!("form_token={token}&digest=digest-t1&action=accept");
    let ask = || Ask::post(INPUT, &body);
    for ask in [
        ask(),
        ask().header("origin", "https://evil.example"),
        ask().header("origin", "null"),
        ask().header("sec-fetch-site", "same-site").header("origin", "https://ops.example.com"),
    ] {
        assert_eq!(ben.send(ask).await.status, 403);
    }
    assert_eq!(votes(&desk).await, 0);
    let ask = ask().header("origin", "https://ops.example.com");
    assert_eq!(ben.send(ask).await.status, 303, "a browser without Sec-Fetch-Site");
    assert_eq!(votes(&desk).await, 1);
}

#[tokio::test]
async fn reading_changes_nothing() {
    let desk = Desk::new();
    desk.approval("t1", "ann", &["ben"], 1).await;
    let ben = desk.signed_in(BEN).await;
    let token = ben.get(INPUT).await.form_token();
    let query = format!("{INPUT}?form_token={token}&digest=digest-t1&action=accept");
    assert_eq!(ben.send(Ask::get(&query).same_origin()).await.status, 200);
    let head = ben.send(Ask::new("HEAD", &query, "").same_origin()).await;
    assert_eq!((head.status, head.body.len()), (200, 0));
    for method in ["PUT", "DELETE", "PATCH"] {
        assert_eq!(ben.send(Ask::new(method, INPUT, "").same_origin()).await.status, 405);
    }
    assert_eq!(votes(&desk).await, 0);
}

#[tokio::test]
async fn denial_without_reason_keeps_the_form_open() {
    let desk = Desk::new();
    desk.approval("t1", "ann", &["ben"], 1).await;
    let ben = desk.signed_in(BEN).await;
    let reply = ben.submit(INPUT, "digest=digest-t1&action=decline").await;
    assert_eq!(reply.status, 422);
    assert!(reply.text().contains("is required to deny"), "{}", reply.text());
    let reply = ben.submit(INPUT, "digest=digest-t1&action=decline&reason=not+now").await;
    assert_eq!(reply.status, 303);
}

#[tokio::test]
async fn changed_digest_shows_the_request_again() {
    let desk = Desk::new();
    desk.approval("t1", "ann", &["ben"], 1).await;
    let ben = desk.signed_in(BEN).await;
    let reply = ben.submit(INPUT, "digest=other&action=accept").await;
    assert_eq!(reply.status, 409);
    assert!(reply.text().contains("has changed"), "{}", reply.text());
    assert_eq!(votes(&desk).await, 0);
}

#[tokio::test]
async fn writes_above_the_burst_wait() {
    let desk = Desk::new();
    let ann = desk.signed_in(ANN).await;
    let token = ann.get("/console/settings").await.form_token();
    let body = format!("form_token={token}&action=save&theme=dark");
    let mut statuses = Vec::new();
    for _ in 0..40 {
        statuses.push(ann.post("/console/settings", &body).await.status);
    }
    assert!(statuses[..30].iter().all(|status| *status == 303), "{statuses:?}");
    assert!(statuses.contains(&429), "{statuses:?}");
}

#[tokio::test]
async fn operator_cancels_and_deletes_a_task_by_form() {
    let desk = Desk::new();
    desk.create("t1", "ann", None).await;
    let (ada, ann) = (desk.signed_in(ADA).await, desk.signed_in(ANN).await);
    assert_eq!(ann.submit("/console/tasks/t1/purge", "").await.status, 403);
    let reply = ada.submit("/console/tasks/t1/cancel", "").await;
    assert_eq!((reply.status, reply.header("location")), (303, Some("../../tasks/t1")));
    let reply = ada.submit("/console/tasks/t1/purge", "").await;
    assert_eq!((reply.status, reply.header("location")), (303, Some("../../tasks")));
    assert_eq!(ada.get("/console/tasks/t1").await.status, 404);
}

#[tokio::test]
async fn bulk_action_cancels_matching_tasks_under_its_name() {
    let desk = Desk::new();
    for id in ["t1", "t2", "t3"] {
        desk.approval(id, "ann", &["ben"], 1).await;
    }
    let ada = desk.signed_in(ADA).await;
    let page = ada.get("/console/bulk?action=cancel&tool=deploy").await;
    assert!(page.text().contains("Cancel 3 tasks"), "{}", page.text());
    let value = |name: &str| {
        let (_, rest) = page.text().split_once(&format!("name=\"{name}\" value=\"")).expect(name);
        rest.split('"').next().expect("a value").to_owned()
    };
    let body = format!(
        "form_token={}&action=cancel&tool=deploy&before={}&expect=3&name=",
        page.form_token(),
        value("before")
    );
    assert_eq!(ada.post("/console/bulk", &body).await.status, 422, "a name is required");
    let reply = ada.post("/console/bulk", &format!("{body}INC-42")).await;
    let location = reply.header("location").expect("a redirect").to_owned();
    assert!(location.starts_with("./bulk/"), "{location}");
    let status = format!("/console/{}", &location[2..]);
    for _ in 0..500 {
        if ada.get(&status).await.text().contains("Finished") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let audit = ada.get("/console/audit?name=INC-42&action=cancelled").await;
    assert_eq!(audit.text().matches("href=\"./tasks/t").count(), 3, "{}", audit.text());
}
