//! `retry` and `purge`: allowed transitions only, with audit events.

use outlive::store::{Phase, TaskId};
use serde_json::json;

use super::{Place, end, err, fine, keep, lines, out, start, task};

const ADA: &str = "name:ada";

#[tokio::test]
async fn retry_queues_only_quarantined_tasks() {
    for place in Place::both().await {
        let store = place.open().await;
        for id in ["kept", "ended", "running", "other"] {
            let lease = start(&*store, task(id, ADA, id)).await;
            match id {
                "kept" | "other" => keep(&*store, &lease).await,
                "ended" => end(&*store, &lease).await,
                _ => {}
            }
        }
        let retried = place.run("retry", &["kept"]);
        assert_eq!(fine(&retried), "kept is queued\n");
        let view = store.get(ADA, &TaskId::new("kept")).await.unwrap().unwrap();
        assert_eq!((view.phase, view.status_message), (Phase::Queued, None));
        let shown = &lines(&place.run("show", &["kept", "--json"]))[0];
        let last = shown["events"].as_array().unwrap().last().unwrap();
        assert_eq!(
            (&last["what"], &last["principal"]),
            (&json!("retried"), &json!("operator:grace"))
        );

        for (id, why) in [
            ("kept", "it is already queued"),
            ("ended", "its status is final; call the tool again"),
            ("running", "a worker runs it"),
            ("unknown", "no task has the ID unknown"),
        ] {
            let refused = place.run("retry", &[id]);
            assert_eq!((refused.status.code(), out(&refused).as_str()), (Some(1), ""), "{id}");
            assert!(err(&refused).contains(why), "{id}: {}", err(&refused));
        }
        let some = place.run("retry", &["ended", "--json"]);
        let line: serde_json::Value = serde_json::from_str(&out(&some)).unwrap();
        assert_eq!((&line["id"], &line["retried"]), (&json!("ended"), &json!(false)));
        assert_eq!(some.status.code(), Some(1));

        assert_eq!(fine(&place.run("retry", &["--all-quarantined", "--tool", "nothing"])), "");
        assert_eq!(fine(&place.run("retry", &["--all-quarantined"])), "other is queued\n");
        let wrong = place.run("retry", &[]);
        assert_eq!(wrong.status.code(), Some(2));
        assert!(err(&wrong).contains("--all-quarantined"));
    }
}

#[tokio::test]
async fn retry_under_a_name_is_listed_in_the_audit_log() {
    for place in Place::both().await {
        let store = place.open().await;
        for (id, tool) in [("one", "deploy"), ("two", "deploy"), ("three", "report")] {
            let lease = start(&*store, task(id, ADA, tool)).await;
            keep(&*store, &lease).await;
        }
        let wrong = place.run("retry", &["one", "--name", "INC-42"]);
        assert_eq!(wrong.status.code(), Some(2), "{}", err(&wrong));
        let wrong = place.run("retry", &["--all-quarantined", "--name", "a: b"]);
        assert_eq!(wrong.status.code(), Some(2));
        assert!(err(&wrong).contains("`name` must not contain a colon"), "{}", err(&wrong));
        let args = ["--all-quarantined", "--tool", "deploy", "--name", "INC-42"];
        let retried = fine(&place.run("retry", &args));
        assert_eq!(retried.lines().count(), 2, "{retried}");
        for (id, phase) in
            [("one", Phase::Queued), ("two", Phase::Queued), ("three", Phase::Quarantined)]
        {
            let view = store.get(ADA, &TaskId::new(id)).await.unwrap().unwrap();
            assert_eq!(view.phase, phase, "{id}");
        }
        let events = store.read(Some("one"), 0, 10).await.unwrap();
        let last = &events.last().unwrap().event;
        assert_eq!(last.action, "retried");
        assert_eq!(last.reason.as_deref(), Some("bulk action INC-42"));
    }
}

#[tokio::test]
async fn purge_deletes_only_ended_tasks_without_force() {
    for place in Place::both().await {
        let store = place.open().await;
        for id in ["ended", "running", "kept", "left"] {
            let lease = start(&*store, task(id, ADA, "deploy")).await;
            match id {
                "ended" | "left" => end(&*store, &lease).await,
                "kept" => keep(&*store, &lease).await,
                _ => {}
            }
        }
        assert_eq!(fine(&place.run("purge", &["ended"])), "ended is deleted\n");
        for (id, phase) in [("running", "running"), ("kept", "quarantined")] {
            let refused = place.run("purge", &[id]);
            assert_eq!(refused.status.code(), Some(1));
            assert!(
                err(&refused).contains(&format!("it is {phase}; pass --force")),
                "{}",
                err(&refused)
            );
            assert!(store.get(ADA, &TaskId::new(id)).await.unwrap().is_some());
        }
        assert_eq!(fine(&place.run("purge", &["running", "--force"])), "running is deleted\n");
        assert!(store.get(ADA, &TaskId::new("running")).await.unwrap().is_none());
        let events = store.read(Some("running"), 0, 10).await.unwrap();
        assert_eq!(events.last().unwrap().event.action, "purged", "the audit log has the purge");
        assert_eq!(events.last().unwrap().event.reason.as_deref(), Some("the task was running"));

        assert_eq!(fine(&place.run("purge", &["--ended-before", "1h"])), "0 tasks deleted\n");
        let all = lines(&place.run("purge", &["--ended-before", "0s", "--json"]));
        assert_eq!(all, [json!({"purged": 1})]);
        let left = lines(&place.run("list", &["--json"]));
        let left: Vec<_> = left.iter().map(|task| task["id"].as_str().unwrap()).collect();
        assert_eq!(left, ["kept"]);
        let wrong = place.run("purge", &["kept", "--ended-before", "1h"]);
        assert_eq!(wrong.status.code(), Some(2));
    }
}
