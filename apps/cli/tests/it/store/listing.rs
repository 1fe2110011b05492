//! `list` and `show`: tasks of all principals, journals without secrets, escaped text.

use std::time::Duration;

use outlive::{
    store::{
        AuditEvent, Changes, InputSource, JournalEntry, NewInputRequest, RecordedEntry, Transition,
    },
    wire::InputRequest,
};
use serde_json::json;

use super::{Place, end, err, fine, keep, lines, out, raw, start, task, value};

#[tokio::test]
async fn store_list_has_all_callers_and_applies_filters() {
    for place in Place::both().await {
        let store = place.open().await;
        store.create(task("one", "name:ada", "deploy")).await.unwrap();
        let lease = start(&*store, task("two", "name:bob", "report")).await;
        end(&*store, &lease).await;
        let lease = start(&*store, task("three", "anonymous", "deploy")).await;
        keep(&*store, &lease).await;
        let table = fine(&place.run("list", &[]));
        let head: Vec<_> = table.lines().next().unwrap().split_whitespace().collect();
        assert_eq!(head, ["TASK", "TOOL", "STATE", "AGE", "CALLER", "MESSAGE"]);
        for (id, words) in [
            ("one", ["deploy", "queued", "name:ada"]),
            ("two", ["report", "failed", "name:bob"]),
            ("three", ["deploy", "quarantined", "anonymous"]),
        ] {
            let line = table.lines().find(|line| line.starts_with(id)).unwrap();
            assert!(words.iter().all(|word| line.contains(word)), "{line}");
        }
        for (args, mut expected) in [
            (vec!["--json"], vec!["one", "two", "three"]),
            (vec!["--json", "--phase", "quarantined"], vec!["three"]),
            (vec!["--json", "--tool", "deploy"], vec!["one", "three"]),
            (vec!["--json", "--principal", "name:bob"], vec!["two"]),
            (vec!["--json", "--older-than", "1h"], vec![]),
            (vec!["--json", "--all"], vec!["one", "two", "three"]),
        ] {
            let tasks = lines(&place.run("list", &args));
            let mut ids: Vec<_> = tasks.iter().map(|task| task["id"].as_str().unwrap()).collect();
            ids.sort_unstable();
            expected.sort_unstable();
            assert_eq!(ids, expected, "{args:?}");
        }
        let kept = &lines(&place.run("list", &["--json", "--phase", "quarantined"]))[0];
        assert_eq!(
            (&kept["phase"], &kept["quarantined"]["how"]),
            (&json!("quarantined"), &json!("failed"))
        );
        assert!(kept["quarantined"]["error"]["message"].as_str().unwrap().contains("5 times"));
        let limited = place.run("list", &["--limit", "2"]);
        assert_eq!(fine(&limited).lines().count(), 3);
        assert!(err(&limited).contains("--all"), "standard error mentions further tasks");
    }
}

#[tokio::test]
async fn store_show_has_journal_without_secrets() {
    for place in Place::both().await {
        let store = place.open().await;
        let lease = start(&*store, task("t", "name:ada", "deploy")).await;
        let ask =
            |key: &str, name: &str| NewInputRequest::new(key, name, Some(InputRequest::ListRoots));
        let changes = Changes::default()
            .entries(vec![
                value("build", &json!({"image": "shop:1", "layers": "y".repeat(300)})),
                RecordedEntry::new("token", JournalEntry::Secret(raw(&json!("hunter2")))),
                RecordedEntry::new("soak", JournalEntry::Due(1_798_761_599_000)),
            ])
            .input_requests(vec![ask("approve", "approve"), ask("where", "where")]);
        store.commit(&lease, &changes, &Transition::Continue).await.unwrap();
        let answer = vec![("approve".to_owned(), raw(&json!({"yes": true})))];
        store
            .respond("name:ada", &lease.task, InputSource::Client, answer, u64::MAX)
            .await
            .unwrap();
        let event = AuditEvent::new("t", "name:ada", "created");
        store.append(vec![event], Duration::from_secs(60), u64::MAX).await.unwrap();

        let page = fine(&place.run("show", &["t"]));
        for part in [
            "state    running",
            "caller   name:ada",
            "worker-1 (claimed 1 times)",
            "{\"image\":\"shop:1\"",
            "2026-12-31T23:59:59.000Z",
            "(not shown)",
            "{\"yes\":true}",
            "created",
            "segments  0",
        ] {
            assert!(page.contains(part), "`{part}` is missing:\n{page}");
        }
        let question = page.lines().find(|line| line.trim().starts_with("where")).unwrap();
        assert!(question.contains("open"), "{page}");
        assert!(!page.contains(&"y".repeat(300)), "values are shortened");
        let full = fine(&place.run("show", &["t", "--full"]));
        assert!(full.contains(&"y".repeat(300)) && full.contains(&"x".repeat(500)));
        let whole = &lines(&place.run("show", &["t", "--json"]))[0];
        let journal: Vec<_> = whole["journal"].as_array().unwrap().iter().collect();
        let kinds: Vec<_> = journal.iter().map(|line| (&line["key"], &line["kind"])).collect();
        let expected =
            [("approve", "response"), ("build", "value"), ("soak", "timer"), ("token", "secret")];
        let expected = expected.map(|(key, kind)| (json!(key), json!(kind)));
        assert!(kinds.iter().zip(&expected).all(|(a, b)| (a.0, a.1) == (&b.0, &b.1)), "{kinds:?}");
        assert_eq!(whole["inputRequests"][0]["state"], "answered");
        assert_eq!(whole["events"][0]["what"], "created");
        for shown in [&page, &full, &whole.to_string()] {
            assert!(!shown.contains("hunter2"), "{shown}");
        }
    }
}

#[tokio::test]
async fn store_output_escapes_control_characters() {
    let place = Place::file();
    let store = place.open().await;
    let evil = "\u{1b}]0;owned\u{7}\u{1b}[2J";
    let lease = start(&*store, task("t", "name:ada", evil)).await;
    let changes = Changes::default()
        .entries(vec![value(evil, &json!(evil))])
        .status_message(Some(evil.to_owned()));
    store.commit(&lease, &changes, &Transition::Continue).await.unwrap();
    for output in [place.run("list", &[]), place.run("show", &["t", "--full"])] {
        let text = fine(&output);
        assert!(text.contains("owned") && !text.contains(['\u{1b}', '\u{7}']), "{text:?}");
    }
}

#[tokio::test]
async fn missing_store_or_task_is_reported() {
    let place = Place::file();
    let absent = place.run("list", &[]);
    assert_eq!(absent.status.code(), Some(3));
    assert!(err(&absent).contains("no store exists at"), "{}", err(&absent));
    assert!(!place.folder.0.join("tasks.db").exists(), "listing must not create a store");
    place.open().await;
    let empty = place.run("list", &[]);
    assert_eq!((fine(&empty).as_str(), err(&empty).as_str()), ("", "no tasks match\n"));
    let unknown = place.run("show", &["unknown"]);
    assert_eq!((unknown.status.code(), out(&unknown).as_str()), (Some(1), ""));
    assert!(err(&unknown).contains("no task has the ID unknown") && err(&unknown).contains("try:"));
}
