//! Saved calls: their list, several at once, in a pipe, and without a data folder.

use serde_json::{Value, json};

use super::stage::{ERAS, Outlive, Ran, Stage};

fn hold(outlive: &Outlive) -> String {
    format!("hold={}", outlive.folder.file("hold"))
}

#[track_caller]
fn detach(outlive: &Outlive, words: &[&str]) -> String {
    let ran = outlive.run(&[&["call", "--detach"][..], words].concat());
    assert_eq!(ran.code, 0, "{ran:?}");
    ran.out.trim().to_owned()
}

/// Returns the line of a table that starts with `begin`.
#[track_caller]
fn line<'a>(ran: &'a Ran, begin: &str) -> &'a str {
    let found = ran.out.lines().find(|line| line.starts_with(begin));
    found.unwrap_or_else(|| panic!("no line starts with {begin}: {ran:?}"))
}

#[test]
fn list_of_saved_calls_shows_state_age_and_arguments() {
    let (outlive, stage) = (Outlive::new(), Stage::start(&[]));
    let (mut working, mut asking, hold) = (Vec::new(), Vec::new(), hold(&outlive));
    for era in ERAS {
        let version = ["--protocol-version", era, stage.url.as_str()];
        let count = [&version[..], &["count", "to=4", hold.as_str()]].concat();
        working.push(detach(&outlive, &count));
        asking.push(detach(&outlive, &[&version[..], &["order_task"]].concat()));
    }
    let listed = outlive.run(&["tasks", "list"]);
    let head: Vec<_> = listed.out.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(head, ["HANDLE", "TOOL", "STATE", "AGE", "ARGUMENTS", "SERVER"], "{listed:?}");
    for (working, asking) in working.iter().zip(&asking) {
        let line = line(&listed, &working[..8]);
        assert!(line.contains("count") && line.contains("working"), "{listed:?}");
        assert!(line.contains(" to=4") || line.contains("hold="), "{listed:?}");
        let line = self::line(&listed, &asking[..8]);
        assert!(line.contains("order_task") && line.contains("input required"), "{listed:?}");
        assert!(line.contains(" s ") || line.contains(" ms "), "its age: {listed:?}");
    }
    let listed = outlive.json(&["tasks", "list", "--json"]);
    let states = |listed: &Value| -> Vec<Value> {
        listed.as_array().unwrap().iter().map(|call| call["state"].clone()).collect()
    };
    let expected = ["working", "input_required", "working", "input_required"];
    assert_eq!(states(&listed), expected, "{listed}");
    let (gone, url) = (outlive.json(&["tasks", "list", "--json", "--offline"]), stage.url.clone());
    assert_eq!(states(&gone), ["task"; 4], "{gone}");
    drop(stage);
    let listed = outlive.run(&["tasks", "list"]);
    assert_eq!((listed.code, listed.out.matches("unreachable").count()), (0, 4), "{listed:?}");
    assert_eq!(listed.out.matches(&url).count(), 4, "{listed:?}");
}

#[test]
fn list_of_authenticated_caller_has_tasks_of_all_versions() {
    let token = "adas-token-0123456789";
    let (outlive, stage) = (Outlive::new(), Stage::start(&["--token", token]));
    let file = outlive.folder.file("token");
    std::fs::write(&file, token).unwrap();
    let known = ["--token-file", file.as_str()];
    for era in ERAS {
        let call = ["--protocol-version", era, stage.url.as_str(), "order_task"];
        detach(&outlive, &[&call[..], &known].concat());
    }
    let list = ["tasks", "list", "--server", stage.url.as_str(), "--json"];
    let listed = outlive.json(&[&list[..], &known].concat());
    let statuses: Vec<_> = listed.as_array().unwrap().iter().map(|it| &it["status"]).collect();
    assert_eq!(statuses, ["input_required"; 2], "{listed}");
    // The saved call also has the path of the token file.
    let listed = outlive.run(&["tasks", "list"]);
    assert_eq!(listed.out.matches("input required").count(), 2, "{listed:?}");
    // Another machine of the caller lists the same tasks.
    let other = Outlive::new();
    let listed = other.json(&[&list[..], &known].concat());
    assert_eq!(listed.as_array().unwrap().len(), 2, "{listed}");
}

#[test]
fn answer_for_unknown_field_names_known_fields() {
    for era in ERAS {
        let (outlive, stage) = (Outlive::new(), Stage::start(&[]));
        let handle = detach(&outlive, &["--protocol-version", era, &stage.url, "order_task"]);
        let ran = outlive.run(&["tasks", "answer", &handle, "--answer", "nofield=1"]);
        assert_eq!(ran.code, 2, "{era}: {ran:?}");
        let said = ran.err.lines().find(|line| line.starts_with("error: ")).unwrap();
        assert!(said.contains("no field `nofield`") && said.contains("`size`"), "{era}: {ran:?}");
        assert_eq!(outlive.written().len(), 1, "the input request is still open");
    }
}

#[test]
fn answer_and_remove_report_outcome_as_json() {
    let (outlive, stage) = (Outlive::new(), Stage::start(&[]));
    let handle = detach(&outlive, &[&stage.url, "order_task"]);
    let answers = ["--answer", "name=Ada", "--answer", "size=Small", "--answer", "gift=no"];
    let answer = ["tasks", "answer", "--json", "--answer", "extras:=[]"];
    let answered = outlive.json(&[&answer[..], &answers].concat());
    assert_eq!(answered, json!({"handle": &handle[..8], "answered": true}));
    let forgotten = outlive.json(&["tasks", "remove", "--json"]);
    assert_eq!(forgotten, json!({"handle": handle, "removed": true}));
}

#[test]
fn several_handles_are_cancelled_or_removed_at_once() {
    let (outlive, stage) = (Outlive::new(), Stage::start(&[]));
    let mut handles: Vec<String> =
        (0..5).map(|_| detach(&outlive, &[&stage.url, "order_task"])).collect();
    let last = handles.pop().unwrap();
    let ran = outlive.run(&["tasks", "cancel", &handles[0], &handles[1], "--json"]);
    assert_eq!(ran.code, 4, "{ran:?}");
    let states = ran.out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    assert!(states.clone().all(|told| told["state"] == "cancelled"), "{ran:?}");
    assert_eq!(states.count(), 2, "{ran:?}");
    // An unknown handle prevents the removal of all others.
    let ran = outlive.run(&["tasks", "remove", &handles[2], "unknown"]);
    assert_eq!((ran.code, outlive.written().len()), (2, 3), "{ran:?}");
    assert_eq!(outlive.run(&["tasks", "remove", &handles[2], &handles[3]]).code, 0);
    assert_eq!(outlive.written()[0]["handle"], json!(last));
    assert_eq!(outlive.run(&["tasks", "cancel", "--all"]).code, 4);
    assert!(outlive.written().is_empty());
}

#[test]
fn watch_in_pipe_exits_when_all_tasks_wait_for_input() {
    for era in ERAS {
        let (outlive, stage) = (Outlive::new(), Stage::start(&[]));
        let handle = detach(&outlive, &["--protocol-version", era, &stage.url, "order_task"]);
        detach(
            &outlive,
            &["--protocol-version", era, &stage.url, "count", "to=4", &hold(&outlive)],
        );
        let watching = outlive.command(&["tasks", "watch"]).spawn().unwrap();
        // The command waits as long as another task runs.
        outlive.folder.touch("hold");
        let ran = Ran::of(watching.wait_with_output().unwrap());
        assert_eq!(ran.code, 5, "{era}: {ran:?}");
        assert!(ran.out.contains("input required") && ran.out.contains("completed"), "{ran:?}");
        assert!(ran.err.contains(&format!("outlive tasks answer {}", &handle[..8])), "{ran:?}");
    }
}

#[test]
fn task_page_has_labels_and_no_json() {
    let (outlive, stage) = (Outlive::new(), Stage::start(&[]));
    let handle = detach(&outlive, &[&stage.url, "order_task"]);
    let seen = outlive.run(&["tasks", "get"]);
    assert!(line(&seen, "handle").contains(&handle), "{seen:?}");
    assert!(line(&seen, "state").contains("input required"), "{seen:?}");
    assert!(line(&seen, "expires").contains("in "), "{seen:?}");
    let asks = line(&seen, "asks");
    assert!(asks.contains("What would you like? (name: text"), "{seen:?}");
    assert!(!seen.out.contains('{'), "no JSON: {seen:?}");
}

#[test]
fn call_without_data_folder_runs_with_warning() {
    let (outlive, stage) = (Outlive::new(), Stage::start(&[]));
    // Not even root can create a folder there.
    let nowhere = "/proc/outlive-data";
    let run = |words: &[&str]| {
        let mut command = outlive.command(words);
        Ran::of(command.env("OUTLIVE_DATA_DIR", nowhere).output().unwrap())
    };
    let ran = run(&["call", &stage.url, "add", "a=1", "b=2"]);
    assert!(ran.code == 0 && ran.out.contains('3'), "{ran:?}");
    assert_eq!(ran.err.matches("warning: cannot save this call").count(), 1, "{ran:?}");
    let mut homeless = outlive.command(&["call", &stage.url, "add", "a=1", "b=2"]);
    for variable in ["OUTLIVE_DATA_DIR", "HOME", "XDG_DATA_HOME"] {
        homeless.env_remove(variable);
    }
    let ran = Ran::of(homeless.output().unwrap());
    assert!(ran.code == 0 && ran.err.contains("HOME is not set"), "{ran:?}");
    // Without a handle, the task ID names the task.
    let ran = run(&["call", "--detach", &stage.url, "count", "to=4", &hold(&outlive)]);
    let task = ran.out.trim();
    let result = format!("outlive tasks result {task} --server {}", stage.url);
    assert!(ran.code == 0 && ran.err.contains(&result), "{ran:?}");
    outlive.folder.touch("hold");
    let ran = run(&["tasks", "result", task, "--server", &stage.url]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "line 1\nline 2\nline 3\nline 4\n"), "{ran:?}");
}
