//! The console of a store without a server.

use std::sync::Arc;

use outlive::{people::People, store::MemoryStore};
use outlive_console::Console;

use crate::desk::{Desk, elicitation};

fn desk() -> Desk {
    let store = Arc::new(MemoryStore::new());
    let people = People::open(Arc::clone(&store) as _).expect("random bytes");
    let console = Console::store(people).build().expect("the console is valid");
    Desk { store, console, ..Desk::local() }
}

#[tokio::test]
async fn operator_sees_all_and_decides_nothing_for_people() {
    let desk = desk();
    desk.approval("t1", "ann", &["ben"], 1).await;
    let request = outlive::store::NewInputRequest::new("q", "q", Some(elicitation("Which?")));
    desk.create("t2", "ann", Some(request)).await;
    let browser = desk.browser();
    let path = desk.console.sign_in_path().expect("a link");
    assert_eq!(browser.get(&path).await.status, 303);
    assert_eq!(browser.role().await.as_deref(), Some("operator"));
    let page = browser.get("/console/inputs/t1/%23approval").await;
    assert_eq!(page.status, 200);
    assert!(!page.text().contains("value=\"accept\""), "{}", page.text());
    let page = browser.get("/console/inputs/t2/q").await;
    let (_, rest) = page.text().split_once("name=\"digest\" value=\"").expect("a form");
    let digest = rest.split('"').next().expect("a value");
    let values = format!("digest={digest}&action=accept&field.quarter=3");
    assert_eq!(browser.submit("/console/inputs/t2/q", &values).await.status, 303);
    assert_eq!(browser.submit("/console/tasks/t1/cancel", "").await.status, 303);
    assert_eq!(browser.submit("/console/tasks/t1/rerun", "").await.status, 403);
}

#[tokio::test]
async fn answer_page_needs_a_server() {
    use outlive::server::http::Routes as _;
    let desk = desk();
    assert!(desk.console.matches("/answer/x").is_none());
    assert!(desk.console.matches("/console/").is_some());
}
