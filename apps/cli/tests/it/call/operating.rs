//! Operator commands for the tasks of all callers, without the server's URL or a token.

use std::{
    fs,
    time::{Duration, Instant},
};

use outlive::store::{
    Audience, Changes, CreateOutcome, NewInputRequest, NewTask, TaskId, Transition, WorkerId, open,
};
use serde_json::{Value, json, value::to_raw_value};

use super::stage::{Outlive, Ran, Stage};

const TOKEN: &str = "adas-token-0123456789";

/// Returns a caller with a token, a server with a store, and the URL of that store.
fn world() -> (Outlive, Stage, String) {
    let caller = Outlive::new();
    let file = caller.folder.file("tasks.db");
    let stage = Stage::start(&["--token", TOKEN, "--store", &file]);
    fs::write(caller.folder.file("token"), TOKEN).unwrap();
    (caller, stage, format!("sqlite:{file}"))
}

/// Detaches a call, and returns its task ID.
#[track_caller]
fn detach(caller: &Outlive, stage: &Stage, words: &[&str]) -> String {
    let token = caller.folder.file("token");
    let call = ["call", "--detach", "--json", "--token-file", &token, stage.url.as_str()];
    let detached = caller.json(&[&call[..], words].concat());
    detached["task"].as_str().unwrap().to_owned()
}

/// Repeats a command until the task requires input: the client has the ID before that.
fn until_it_asks(operator: &Outlive, words: &[&str]) -> Ran {
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        let ran = operator.run(words);
        if ran.err != "the task has no open input requests\n" || Instant::now() > end {
            return ran;
        }
    }
}

#[test]
fn operator_lists_the_tasks_of_all_callers() {
    let (caller, stage, store) = world();
    let task = detach(&caller, &stage, &["order_task"]);
    let operator = Outlive::new();
    let listed = operator.run(&["tasks", "list", "--store", &store]);
    assert!(listed.out.contains(&task) && listed.out.contains("ada"), "{listed:?}");
    let listed = operator.run(&["tasks", "list", "--store", &store, "--json"]);
    let listed: Value = serde_json::from_str(listed.out.trim()).unwrap();
    assert_eq!(listed["id"], task.as_str(), "{listed}");
}

#[test]
fn operator_answers_in_place_of_a_caller() {
    let (caller, stage, store) = world();
    let task = detach(&caller, &stage, &["order_task"]);
    let operator = Outlive::new();
    let answer = ["tasks", "answer", &task[..8], "--store", &store];
    let wrong = until_it_asks(&operator, &[&answer[..], &["--answer", "nofield=1"]].concat());
    assert!(wrong.code == 2 && wrong.err.contains("`size`"), "{wrong:?}");
    let nothing = operator.run(&answer);
    assert!(nothing.code == 5 && nothing.err.contains("What would you like?"), "{nothing:?}");
    let answers = ["--answer", "name=Grace", "--answer", "size=Small", "--answer", "gift=no"];
    let answers = [&answers[..], &["--answer", "extras:=[]"]].concat();
    let ran = operator.run(&[&answer[..], &answers].concat());
    assert_eq!((ran.code, ran.err.as_str()), (0, "answered\n"), "{ran:?}");
    let result = caller.run(&["tasks", "result"]);
    assert!(result.code == 0 && result.out.contains("Grace"), "{result:?}");
    let again = operator.run(&[&answer[..], &answers].concat());
    assert_eq!(
        (again.code, again.err.as_str()),
        (0, "the task has no open input requests\n"),
        "{again:?}"
    );
    let shown = operator.run(&["store", "show", &store, &task[..8], "--json"]);
    assert!(shown.out.contains("operator:"), "the audit log has the operator: {shown:?}");
}

#[tokio::test]
async fn operator_answers_request_that_no_tool_may_answer() {
    let operator = Outlive::new();
    let url = format!("sqlite:{}", operator.folder.file("tasks.db"));
    let store = open(&url).await.unwrap();
    let request = to_raw_value(&json!({"version": "2026-07-28", "message": {}})).unwrap();
    let task = NewTask::new(TaskId::new("t"), "name:ada", "refund", "modern", request)
        .worker(Some((WorkerId::new("w"), Duration::from_secs(60))));
    let created = store.create(task).await.unwrap();
    let CreateOutcome::Created { lease: Some(lease), .. } = created else { panic!("{created:?}") };
    let form = json!({"method": "elicitation/create", "params": {"message": "Refund?",
        "requestedSchema": {"type": "object", "required": ["yes"],
            "properties": {"yes": {"type": "boolean"}}}}});
    let form = Some(serde_json::from_value(form).unwrap());
    let asked = NewInputRequest::new("approve", "approve", form).audience(Audience::Caller);
    let changes = Changes::default().input_requests(vec![asked]);
    store.commit(&lease, &changes, &Transition::Continue).await.unwrap();
    let shown = operator.run(&["store", "show", &url, "t", "--json"]);
    let shown: Value = serde_json::from_str(shown.out.trim()).unwrap();
    assert_eq!(shown["inputRequests"][0]["audience"], "caller", "{shown}");
    let ran = operator.run(&["tasks", "answer", "t", "--store", &url, "--answer", "yes=true"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, "answered\n"), "{ran:?}");
    let answers = store.inbox(&lease).await.unwrap().answers;
    assert!(answers[0].1.get().contains("\"yes\":true"), "{answers:?}");
}

#[test]
fn operator_cancels_in_place_of_a_caller() {
    let (caller, stage, store) = world();
    let hold = format!("hold={}", caller.folder.file("hold"));
    let waiting = detach(&caller, &stage, &["order_task"]);
    let running = detach(&caller, &stage, &["count", "to=4", &hold]);
    let operator = Outlive::new();
    let unknown = operator.run(&["tasks", "cancel", &waiting, "unknown", "--store", &store]);
    assert_eq!(unknown.code, 1, "{unknown:?}");
    let ran = operator.run(&["tasks", "cancel", &waiting, &running, "--store", &store, "--json"]);
    assert_eq!((ran.code, ran.out.matches("\"cancelled\"").count()), (4, 2), "{ran:?}");
    let listed = caller.run(&["tasks", "list"]);
    assert_eq!(listed.out.matches("  cancelled  ").count(), 2, "{listed:?}");
}

#[test]
fn operator_uses_store_of_server_in_current_folder() {
    let operator = Outlive::new();
    let tool = "[tools.hello]\ndescription = \"Greets.\"\ncommand = [\"echo\", \"hello\"]\n";
    let run = |folder: &str, words: &[&str]| {
        let mut command = operator.command(words);
        Ran::of(command.current_dir(operator.folder.file(folder)).output().unwrap())
    };
    for folder in ["one", "two", "empty"] {
        fs::create_dir(operator.folder.file(folder)).unwrap();
    }
    for folder in ["one", "two"] {
        fs::write(operator.folder.file(&format!("{folder}/outlive.toml")), tool).unwrap();
        // The server exits at the end of its empty standard input, after it has created its store.
        let served = run(folder, &["serve", "--stdio"]);
        assert_eq!(served.code, 0, "{served:?}");
    }
    for words in [&["tasks", "list", "--all-callers"][..], &["store", "list"]] {
        for folder in ["one", "two"] {
            let ran = run(folder, words);
            assert_eq!((ran.code, ran.err.as_str()), (0, "no tasks match\n"), "{words:?}: {ran:?}");
        }
        let ran = run("empty", words);
        assert!(ran.code == 2 && ran.err.contains("several stores"), "{words:?}: {ran:?}");
    }
}
