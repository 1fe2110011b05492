//! The extension `dev.outlive/task-list`: one list for the tasks of every version.

use std::{collections::BTreeSet, fs, path::Path};

use outlive::server::{Principal, Server, tasks::TaskConfig};
use serde_json::{Value, json};

use super::world::{Counts, builder, modern, start};
use crate::support::pipe::{LEGACY, Pipe, error, result};

const LIST: &str = "dev.outlive/tasks/list";
const EXTENSION: &str = "dev.outlive/task-list";

fn server(page_size: usize) -> Server {
    let builder = builder(TaskConfig::in_memory(), &Counts::default());
    builder.limits(|limits| limits.page_size = page_size).build().unwrap()
}

async fn start_legacy(pipe: &mut Pipe) -> String {
    let call = json!({"name": "stubborn", "task": {}});
    let created = pipe.result("tools/call", call).await;
    created["task"]["taskId"].as_str().unwrap().to_owned()
}

fn ids(page: &Value) -> Vec<&str> {
    page["tasks"].as_array().unwrap().iter().map(|task| task["taskId"].as_str().unwrap()).collect()
}

#[tokio::test(start_paused = true)]
async fn task_list_contains_tasks_of_every_version_once_in_pages() {
    let server = server(2);
    let ada = || Principal::named("ada");
    let mut newer = Pipe::open_as(&server, ada());
    let mut older = Pipe::speaking_as(&server, "2025-11-25", ada()).await;
    let (mut made, mut made_legacy) = (BTreeSet::new(), BTreeSet::new());
    for _ in 0..3 {
        made.insert(start(&mut newer, "stubborn", json!({})).await);
        made_legacy.insert(start_legacy(&mut older).await);
    }
    made.extend(made_legacy.iter().cloned());
    let mut oldest = Pipe::speaking_as(&server, LEGACY[0], ada()).await;
    for pipe in [&mut newer, &mut older, &mut oldest] {
        let (mut seen, mut params, mut pages) = (Vec::new(), json!({}), 0);
        loop {
            let page = match pages {
                pages if pages > 3 => panic!("the list does not end: {seen:?}"),
                _ => pipe.result(LIST, params).await,
            };
            pages += 1;
            seen.extend(ids(&page).into_iter().map(str::to_owned));
            let eras = page["tasks"].as_array().unwrap().iter();
            for task in eras {
                let is_legacy = made_legacy.contains(task["taskId"].as_str().unwrap());
                assert_eq!(task["era"], if is_legacy { "legacy" } else { "modern" }, "{task}");
                assert_eq!(
                    (&task["tool"], &task["status"]),
                    (&json!("stubborn"), &json!("working"))
                );
            }
            match page.get("nextCursor") {
                Some(cursor) => params = json!({"cursor": cursor}),
                None => break,
            }
        }
        assert_eq!((pages, seen.len()), (3, 6));
        assert_eq!(seen.into_iter().collect::<BTreeSet<_>>(), made);
    }
    // `tasks/list` contains only the tasks of its era.
    let (mut seen, mut page) = (BTreeSet::new(), older.result("tasks/list", json!({})).await);
    loop {
        seen.extend(ids(&page).into_iter().map(str::to_owned));
        let Some(cursor) = page.get("nextCursor") else { break };
        // A cursor is valid only for its method.
        assert_eq!(older.error(LIST, json!({"cursor": cursor})).await["code"], -32602);
        page = older.result("tasks/list", json!({"cursor": cursor})).await;
    }
    assert_eq!(seen, made_legacy);
}

#[tokio::test(start_paused = true)]
async fn task_list_and_cursor_are_private_to_principal() {
    let server = server(1);
    let mut ada = Pipe::open_as(&server, Principal::named("ada"));
    let mut eve = Pipe::open_as(&server, Principal::named("eve"));
    for _ in 0..2 {
        start(&mut ada, "stubborn", json!({})).await;
    }
    let cursor = ada.result(LIST, json!({})).await["nextCursor"].clone();
    assert!(cursor.is_string());
    assert_eq!(eve.result(LIST, json!({})).await["tasks"], json!([]));
    assert_eq!(eve.error(LIST, json!({"cursor": cursor})).await["code"], -32602);
    assert_eq!(
        ada.result(LIST, json!({"cursor": cursor})).await["tasks"].as_array().unwrap().len(),
        1
    );
    assert_eq!(ada.error(LIST, json!({"cursor": 7})).await["code"], -32602);
}

#[tokio::test(start_paused = true)]
async fn task_list_is_not_offered_to_anonymous_caller() {
    let server = server(10);
    for principal in [Principal::ANONYMOUS, Principal::named("ada")] {
        let is_named = !principal.is_anonymous();
        let mut newer = Pipe::open_as(&server, principal.clone());
        start(&mut newer, "stubborn", json!({})).await;
        let offered = result(&modern(&mut newer, "server/discover", json!({})).await);
        let offered = &offered["capabilities"]["extensions"];
        assert_eq!(offered.get(EXTENSION).is_some(), is_named, "{offered}");
        let mut older = Pipe::open_as(&server, principal.clone());
        let offered = older.legacy("2025-11-25").await;
        let offered = &offered["capabilities"]["extensions"];
        assert_eq!(offered.get(EXTENSION).is_some(), is_named, "{offered}");
        for pipe in [&mut newer, &mut older] {
            match is_named {
                true => {
                    assert_eq!(pipe.result(LIST, json!({})).await["tasks"][0]["tool"], "stubborn")
                }
                false => assert_eq!(pipe.error(LIST, json!({})).await["code"], -32601),
            }
        }
    }
    let plain = Server::builder("plain", "1").build().unwrap();
    let mut pipe = Pipe::open_as(&plain, Principal::named("ada"));
    assert_eq!(error(&modern(&mut pipe, LIST, json!({})).await)["code"], -32601);
}

#[tokio::test(start_paused = true)]
async fn task_list_documentation_example_matches_server() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(root.join("docs/extensions/task-list.md")).unwrap();
    let example = page.split("<!-- example: response -->").nth(1).unwrap();
    let example = example.split("```json").nth(1).and_then(|rest| rest.split("```").next());
    let example: Value = serde_json::from_str(example.unwrap()).unwrap();
    let server = server(1);
    let mut ada = Pipe::open_as(&server, Principal::named("ada"));
    for _ in 0..2 {
        start(&mut ada, "stubborn", json!({})).await;
    }
    let sent = ada.result(LIST, json!({})).await;
    let members =
        |value: &Value| value.as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>();
    let mut sent_members = members(&sent);
    sent_members.remove("_meta");
    assert_eq!(sent_members, members(&example["result"]));
    assert_eq!(members(&sent["tasks"][0]), members(&example["result"]["tasks"][0]));
}
