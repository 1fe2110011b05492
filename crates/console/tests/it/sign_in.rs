//! Sign-in by token and by link, sessions and their ends.

use std::time::Duration;

use outlive::{
    server::{SealKeys, http::StaticTokens},
    store::{KeyValueStore as _, OperatorStore as _},
};
use outlive_console::sign_in_key;

use crate::desk::{ADA, ANN, ANN_MCP, Ask, BEN, Browser, Desk, KEYS};

const HOUR: Duration = Duration::from_secs(3_600);

#[tokio::test]
async fn page_without_a_session_leads_to_sign_in_and_back() {
    let desk = Desk::new();
    let reply = desk.get("/console/tasks?state=running").await;
    let location = reply.header("location").map(str::to_owned);
    assert_eq!(
        (reply.status, location.as_deref()),
        (303, Some("./in?next=tasks%3Fstate%3Drunning"))
    );
    let browser = desk.browser();
    let token = browser.get("/console/in?next=tasks%3Fstate%3Drunning").await.form_token();
    let body = format!("form_token={token}&token={ANN}");
    let reply = browser.post("/console/in?next=tasks%3Fstate%3Drunning", &body).await;
    assert_eq!(reply.header("location"), Some("./tasks?state=running"));
    assert_eq!(browser.get("/console/tasks?state=running").await.status, 200);
}

#[tokio::test]
async fn next_page_outside_of_the_console_is_ignored() {
    let desk = Desk::new();
    let targets =
        ["//evil.example", "https:%2F%2Fevil.example", "..%2Fmcp", "%2Fmcp", "a%5Cb", "a%0Ab"];
    for (number, next) in (1..).zip(targets) {
        let browser = desk.browser();
        let path = format!("/console/in?next={next}");
        let token = browser.get(&path).await.form_token();
        let ask = Ask::post(&path, &format!("form_token={token}&token={ANN}")).same_origin();
        let reply = browser.send(ask.from([10, 0, 0, number])).await;
        assert_eq!((reply.status, reply.header("location")), (303, Some("./")), "{next}");
    }
}

#[tokio::test]
async fn session_cookie_is_bound_to_the_host_and_hidden_from_scripts() {
    let desk = Desk::new();
    let browser = desk.browser();
    let reply = browser.sign_in(ANN).await;
    let cookie = reply.set_cookie("__Host-outlive").expect("a session");
    assert!(
        cookie.ends_with("; Path=/; Max-Age=604800; HttpOnly; SameSite=Lax; Secure"),
        "{cookie}"
    );
    let local = Desk::local();
    let key = local.console.sign_in_path().expect("a link");
    let reply = local.get(&key).await;
    let cookie = reply.set_cookie("outlive").expect("a session");
    assert!(cookie.ends_with("; Path=/; Max-Age=604800; HttpOnly; SameSite=Lax"), "{cookie}");
}

#[tokio::test]
async fn wrong_token_and_mcp_token_get_the_same_page() {
    let desk = Desk::new();
    let mut pages = Vec::new();
    for token in ["wrong-token-0123456789", ANN_MCP] {
        let browser = desk.browser();
        let reply = browser.sign_in(token).await;
        assert_eq!((reply.status, browser.role().await), (403, None));
        assert!(reply.text().contains("This token is wrong."), "{}", reply.text());
        let form_token = reply.form_token();
        pages.push(reply.text().replace(&form_token, ""));
    }
    assert_eq!(pages[0], pages[1]);
}

#[tokio::test]
async fn sign_in_form_of_another_browser_is_rejected() {
    let desk = Desk::new();
    let (attacker, victim) = (desk.browser(), desk.browser());
    let token = attacker.get("/console/in").await.form_token();
    victim.get("/console/in").await;
    let body = format!("form_token={token}&token={BEN}");
    assert_eq!(victim.post("/console/in", &body).await.status, 403);
    assert_eq!(victim.role().await, None);
    let ask = Ask::post("/console/in", &body).header("sec-fetch-site", "cross-site");
    assert_eq!(attacker.send(ask).await.status, 403);
    assert_eq!(attacker.post("/console/in", &body).await.status, 303);
}

#[tokio::test]
async fn store_has_neither_the_session_id_nor_the_token() {
    let desk = Desk::new();
    let browser = desk.signed_in(ANN).await;
    let id = browser.cookies.borrow()["__Host-outlive"].clone();
    let entries = desk.store.key_values("console/", 100).await.expect("the store responds");
    assert_eq!(entries.len(), 2, "session and slot");
    for (key, value) in entries {
        for secret in [id.as_str(), ANN] {
            assert!(!key.contains(secret) && !value.get().contains(secret), "{key}");
        }
    }
}

#[tokio::test]
async fn revoked_token_ends_its_session() {
    let desk = Desk::new();
    let (ann, ben) = (desk.signed_in(ANN).await, desk.signed_in(BEN).await);
    desk.tokens.set(StaticTokens::new().with_deciding("ben", BEN));
    assert_eq!(ann.role().await, None);
    assert_eq!(ben.role().await.as_deref(), Some("person"));
    desk.tokens.set(crate::desk::everyone());
    assert_eq!(ann.role().await, None, "an ended session does not return");
}

#[tokio::test]
async fn token_that_becomes_an_mcp_token_or_another_person_ends_its_session() {
    for tokens in
        [StaticTokens::new().with("ann", ANN), StaticTokens::new().with_deciding("eve", ANN)]
    {
        let desk = Desk::new();
        let ann = desk.signed_in(ANN).await;
        desk.tokens.set(tokens);
        assert_eq!(ann.role().await, None);
    }
}

#[tokio::test]
async fn role_of_a_session_follows_its_person() {
    let desk = Desk::new();
    assert_eq!(desk.signed_in(ADA).await.role().await.as_deref(), Some("operator"));
    assert_eq!(desk.signed_in(ANN).await.role().await.as_deref(), Some("person"));
}

#[tokio::test]
async fn signed_out_session_ends() {
    let desk = Desk::new();
    let ann = desk.signed_in(ANN).await;
    let other = Browser { desk: &desk, cookies: ann.cookies.clone() };
    let reply = ann.submit("/console/settings", "action=sign-out").await;
    assert_eq!((reply.status, reply.header("location")), (303, Some("./in")));
    assert!(reply.set_cookie("__Host-outlive").is_some_and(|it| it.contains("Max-Age=0")));
    assert_eq!(other.role().await, None);
}

#[tokio::test]
async fn unused_session_ends_after_twelve_hours_and_a_used_one_after_seven_days() {
    let desk = Desk::new();
    let (used, unused) = (desk.signed_in(ANN).await, desk.signed_in(BEN).await);
    desk.advance(11 * HOUR);
    assert!(used.role().await.is_some());
    desk.advance(HOUR + HOUR / 60);
    assert_eq!(unused.role().await, None);
    for _ in 0..14 {
        assert!(used.role().await.is_some());
        desk.advance(11 * HOUR);
    }
    assert!(used.role().await.is_some(), "166 h");
    desk.advance(3 * HOUR);
    assert_eq!(used.role().await, None, "169 h");
}

#[tokio::test]
async fn ninth_session_of_a_person_ends_the_first() {
    let desk = Desk::new();
    let mut browsers = Vec::new();
    let ben = desk.signed_in(BEN).await;
    for _ in 0..9 {
        desk.advance(Duration::from_secs(60));
        let browser = desk.browser();
        let token = browser.get("/console/in").await.form_token();
        let body = format!("form_token={token}&token={ANN}");
        let address = [10, 0, 0, u8::try_from(browsers.len()).expect("few")];
        let ask = Ask::post("/console/in", &body).same_origin().from(address);
        assert_eq!(browser.send(ask).await.status, 303);
        browsers.push(browser);
    }
    assert_eq!(browsers[0].role().await, None);
    for browser in &browsers[1..] {
        assert!(browser.role().await.is_some());
    }
    assert!(ben.role().await.is_some(), "another person is not affected");
}

#[tokio::test]
async fn one_time_link_signs_one_browser_on_this_machine_in() {
    let desk = Desk::local();
    let path = desk.console.sign_in_path().expect("a link");
    let remote = desk.send(Ask::get(&path).from([192, 0, 2, 1])).await;
    assert_eq!(remote.status, 404, "another machine does not use the link up");
    let browser = desk.browser();
    let reply = browser.get(&path).await;
    assert_eq!((reply.status, reply.header("location")), (303, Some("../")));
    assert_eq!(browser.role().await.as_deref(), Some("operator"));
    let again = desk.get(&path).await;
    let unknown = desk.get("/console/in/unknown").await;
    assert_eq!((again.status, unknown.status), (404, 404));
    assert_eq!(again.body, unknown.body);
}

#[tokio::test]
async fn link_of_another_process_works_with_the_same_keys_only() {
    let desk = Desk::local();
    let link = |key: [u8; 32]| {
        format!("/console/in/{}", sign_in_key(&SealKeys::new(key)).expect("random bytes"))
    };
    assert_eq!(desk.get(&link([8; 32])).await.status, 404);
    assert_eq!(desk.get(&link(KEYS)).await.status, 303);
}

#[tokio::test]
async fn one_time_link_expires_after_ten_minutes() {
    let desk = Desk::local();
    let path = desk.console.sign_in_path().expect("a link");
    desk.advance(Duration::from_secs(601));
    assert_eq!(desk.get(&path).await.status, 404);
}

#[tokio::test]
async fn one_time_link_does_not_work_on_a_server_with_an_authenticator() {
    let desk = Desk::new();
    let path = desk.console.sign_in_path().expect("a link");
    assert_eq!(desk.get(&path).await.status, 404);
}

#[tokio::test]
async fn changed_link_is_unknown() {
    let desk = Desk::local();
    let path = desk.console.sign_in_path().expect("a link");
    for at in ("/console/in/".len()..path.len()).step_by(9) {
        let mut changed = path.clone();
        let other = if &path[at..=at] == "A" { "B" } else { "A" };
        changed.replace_range(at..=at, other);
        let address = [127, 0, 1, u8::try_from(at % 200).expect("is small")];
        assert_eq!(desk.send(Ask::get(&changed).from(address)).await.status, 404);
    }
    assert_eq!(desk.get(&path).await.status, 303);
}

#[tokio::test]
async fn sixth_sign_in_of_an_address_waits() {
    let desk = Desk::new();
    for _ in 0..5 {
        assert_eq!(desk.browser().sign_in("wrong-token-0123456789").await.status, 403);
    }
    let reply = desk.browser().sign_in(ANN).await;
    assert_eq!(reply.status, 429);
    assert!(reply.header("retry-after").is_some());
    let browser = desk.browser();
    let token = browser.get("/console/in").await.form_token();
    let ask = Ask::post("/console/in", &format!("form_token={token}&token={ANN}")).same_origin();
    assert_eq!(browser.send(ask.from([192, 0, 2, 7])).await.status, 303, "another address");
}

#[tokio::test]
async fn deleted_session_entry_ends_the_session() {
    let desk = Desk::new();
    let ann = desk.signed_in(ANN).await;
    let entries = desk.store.key_values("console/session/", 9).await.expect("the store responds");
    desk.store.delete(&entries[0].0).await.expect("the store responds");
    assert_eq!(ann.role().await, None);
}
