//! Detached and resumed calls, and the tasks of a server.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command},
};

use serde_json::{Value, json};

use super::stage::{ERAS, Folder, Outlive, Stage};

fn hold(folder: &Folder) -> String {
    format!("hold={}", folder.file("hold"))
}

/// Returns a server that requires tokens, and the path of a file with a token.
fn named_caller() -> (Outlive, Stage, String) {
    let token = "adas-token-0123456789";
    let (outlive, stage) = (Outlive::new(), Stage::start(&["--token", token]));
    let file = outlive.folder.file("token");
    std::fs::write(&file, token).unwrap();
    (outlive, stage, file)
}

#[test]
fn detached_call_is_listed_shown_and_awaited() {
    for era in ERAS {
        let (outlive, stage) = (Outlive::new(), Stage::start(&[]));
        let version = ["--protocol-version", era];
        let hold = hold(&outlive.folder);
        let call = ["call", "--detach", stage.url.as_str(), "count", "to=4", hold.as_str()];
        let ran = outlive.run(&[&call[..], &version].concat());
        let handle = ran.out.trim();
        assert_eq!((ran.code, handle.len()), (0, 32), "{ran:?}");
        assert!(ran.err.contains(&format!("outlive tasks result {}", &handle[..8])), "{ran:?}");
        let list = outlive.run(&["tasks", "list"]).out;
        assert!(list.starts_with("HANDLE") && list.contains(&stage.url), "{list}");
        let seen =
            outlive.json(&[&["tasks", "get", &handle[..4], "--json"][..], &version].concat());
        assert_eq!(
            (&seen["handle"], &seen["state"]),
            (&json!(handle), &json!("working")),
            "{seen}"
        );
        outlive.folder.touch("hold");
        // The only saved call needs no handle.
        let lines = "line 1\nline 2\nline 3\nline 4\n";
        outlive.says(&[&["tasks", "result", "--keep-handle"][..], &version].concat(), lines);
        assert_eq!(outlive.written()[0]["state"], "completed");
        outlive.says(&[&["tasks", "result"][..], &version].concat(), lines);
        assert!(outlive.written().is_empty());
    }
}

#[test]
fn task_progress_in_json_has_numbers() {
    let (outlive, stage) = (Outlive::new(), Stage::start(&[]));
    let detached = outlive.json(&[
        "call",
        "--detach",
        "--json",
        &stage.url,
        "count",
        "to=4",
        &hold(&outlive.folder),
    ]);
    assert_eq!((&detached["tool"], detached["task"].is_string()), (&json!("count"), true));
    let expected = json!({"progress": 2.0, "total": 4.0, "message": "counting"});
    let far = || outlive.json(&["tasks", "get", "--json"])["progress"].clone();
    let start = std::time::Instant::now();
    while far() != expected {
        assert!(start.elapsed() < super::stage::GUARD, "{}", far());
    }
    outlive.folder.touch("hold");
}

#[test]
fn detach_of_call_without_task_prints_result() {
    let (outlive, stage) = (Outlive::new(), Stage::start(&[]));
    let call = ["call", "--detach", &stage.url, "add", "a=1", "b=2"];
    let ran = outlive.says(&call, "{\n  \"sum\": 3\n}\n");
    assert!(ran.err.contains("without a task"), "{ran:?}");
}

#[test]
fn tasks_cancel_cancels_task() {
    for era in ERAS {
        let (outlive, stage) = (Outlive::new(), Stage::start(&[]));
        for tool in ["count", "order_task"] {
            let hold = hold(&outlive.folder);
            let mut call =
                vec!["call", "--detach", "--protocol-version", era, stage.url.as_str(), tool];
            if tool == "count" {
                call.extend(["to=4", hold.as_str()]);
            }
            assert_eq!(outlive.run(&call).code, 0);
            let ran = outlive.run(&["tasks", "cancel", "--protocol-version", era]);
            assert_eq!((ran.code, ran.err.as_str()), (4, "cancelled\n"), "{era} {tool}: {ran:?}");
            assert!(outlive.written().is_empty());
        }
    }
}

fn killed(mut calling: Child) {
    calling.kill().unwrap();
    calling.wait().unwrap();
}

#[test]
fn result_after_killed_call_is_complete() {
    let (outlive, stage) = (Outlive::new(), Stage::start(&[]));
    let call = ["call", &stage.url, "count", "to=4", &hold(&outlive.folder)];
    let calling = outlive.command(&call).spawn().unwrap();
    let handle = outlive.until_task();
    killed(calling);
    outlive.folder.touch("hold");
    outlive.says(&["tasks", "result", &handle], "line 1\nline 2\nline 3\nline 4\n");
}

#[test]
fn interrupt_in_pipe_exits_and_task_keeps_running() {
    let (outlive, stage) = (Outlive::new(), Stage::start(&[]));
    let call = ["call", &stage.url, "count", "to=4", &hold(&outlive.folder)];
    let calling = outlive.command(&call).spawn().unwrap();
    outlive.until_task();
    let kill = Command::new("kill").args(["-INT", &calling.id().to_string()]).status();
    assert!(kill.unwrap().success());
    let ended = calling.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(130), "{ended:?}");
    assert_eq!(outlive.written().len(), 1);
    outlive.folder.touch("hold");
    outlive.says(&["tasks", "result"], "line 1\nline 2\nline 3\nline 4\n");
}

#[test]
fn task_of_stdio_server_with_store_resumes_in_next_process() {
    let outlive = Outlive::new();
    let server = format!(
        "'{}' --stdio --store '{}'",
        super::stage::program(),
        outlive.folder.file("tasks.db")
    );
    let detached = outlive.run(&["call", "--detach", &server, "order_task"]);
    assert_eq!(detached.code, 0, "{detached:?}");
    let answers = ["--answer", "name=Ada", "--answer", "size=Small", "--answer", "gift=no"];
    let ran = outlive.run(&[&["tasks", "result", "--answer", "extras:=[]"][..], &answers].concat());
    let said: Value =
        serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
    assert_eq!((ran.code, &said["name"]), (0, &json!("Ada")), "{ran:?}");
}

#[test]
fn tasks_watch_in_pipe_prints_line_per_change() {
    let (outlive, stage) = (Outlive::new(), Stage::start(&[]));
    assert_eq!(
        outlive
            .run(&["call", "--detach", &stage.url, "count", "to=4", &hold(&outlive.folder)])
            .code,
        0
    );
    let watching = outlive.command(&["tasks", "watch"]).spawn().unwrap();
    outlive.folder.touch("hold");
    let watched = watching.wait_with_output().unwrap();
    let lines = String::from_utf8(watched.stdout).unwrap();
    let last = lines.lines().last().unwrap();
    assert!(last.contains("count  completed"), "{lines}");
    assert!(!lines.contains('\u{1b}'), "{lines}");
    // An ended task is still listed, so that its result can be printed.
    let ran = outlive.run(&["tasks", "watch", "--json"]);
    let line: Value = serde_json::from_str(ran.out.lines().last().unwrap()).unwrap();
    assert_eq!(line["tool"], "count", "{ran:?}");
    outlive.says(&["tasks", "result"], "line 1\nline 2\nline 3\nline 4\n");
}

#[test]
fn tasks_watch_with_unreachable_server_exits_with_code_3() {
    let (outlive, stage) = (Outlive::new(), Stage::start(&[]));
    let call = ["call", "--detach", &stage.url, "count", "to=4", &hold(&outlive.folder)];
    assert_eq!(outlive.run(&call).code, 0);
    drop(stage);
    let ran = outlive.run(&["tasks", "watch"]);
    assert!(ran.out.contains("unreachable"), "{ran:?}");
    assert!(ran.code == 3 && ran.err.contains("lost contact with 1 of 1 tasks"), "{ran:?}");
    assert_eq!(outlive.written().len(), 1, "the call can be watched again");
}

#[test]
fn tasks_list_of_server_has_its_tasks() {
    let (outlive, stage, file) = named_caller();
    let known = ["--token-file", file.as_str()];
    let call =
        ["call", "--detach", "--protocol-version", "2025-11-25", stage.url.as_str(), "order_task"];
    assert_eq!(outlive.run(&[&call[..], &known].concat()).code, 0);
    let list = [
        "tasks",
        "list",
        "--server",
        stage.url.as_str(),
        "--protocol-version",
        "2025-11-25",
        "--json",
    ];
    let listed = outlive.json(&[&list[..], &known].concat());
    assert_eq!(listed[0]["status"], "input_required", "{listed}");
    assert_eq!(listed[0]["taskId"], outlive.written()[0]["task"]);
    // With the task ID, the caller can show the task, answer it and get its result, without a
    // handle.
    let name = listed[0]["taskId"].as_str().unwrap();
    let there = ["--server", stage.url.as_str(), "--protocol-version", "2025-11-25"];
    let there = [&there[..], &known].concat();
    let seen = outlive.json(&[&["tasks", "get", name, "--json"][..], &there].concat());
    assert_eq!((&seen["task"], &seen["state"]), (&json!(name), &json!("input_required")), "{seen}");
    let ran = outlive.run(&[&["tasks", "get", name][..], &there].concat());
    let answer = format!("outlive tasks answer {name} --server {}", stage.url);
    assert!(ran.err.contains(&answer), "{ran:?}");
    let answers = ["--answer", "name=Ada", "--answer", "size=Small", "--answer", "gift=no"];
    let result = ["tasks", "result", name, "--answer", "extras=Milk"];
    let ran = outlive.run(&[&result[..], &answers, &there].concat());
    assert!(ran.code == 0 && ran.out.contains("Ada"), "{ran:?}");
}

#[test]
fn tasks_list_of_server_covers_all_versions_and_machines() {
    let (ada, eve) = ("adas-token-0123456789", "eves-token-0123456789");
    let stage = Stage::start(&["--token", ada, "--other-token", eve]);
    let machine = |token: &str| {
        let outlive = Outlive::new();
        std::fs::write(outlive.folder.file("token"), token).unwrap();
        outlive
    };
    let run = |outlive: &Outlive, words: &[&str]| {
        outlive.run(&[words, &["--token-file", &outlive.folder.file("token")]].concat())
    };
    let list = ["tasks", "list", "--server", &stage.url];
    let made = ERAS.map(|era| {
        let outlive = machine(ada);
        let call =
            ["call", "--detach", "--protocol-version", era, stage.url.as_str(), "order_task"];
        let ran = run(&outlive, &call);
        assert_eq!(ran.code, 0, "{ran:?}");
        outlive.written()[0]["task"].as_str().unwrap().to_owned()
    });
    let third = machine(ada);
    let ran = run(&third, &list);
    assert!(ran.code == 0 && ran.err.is_empty(), "{ran:?}");
    assert!(made.iter().all(|id| ran.out.contains(id)), "{made:?}: {ran:?}");
    assert_eq!(ran.out.matches("order_task").count(), 2, "{ran:?}");
    for era in ERAS {
        let ran = run(&third, &[&list[..], &["--json", "--protocol-version", era]].concat());
        let listed: Vec<Value> = serde_json::from_str(&ran.out).unwrap();
        let ids: Vec<&Value> = listed.iter().map(|task| &task["taskId"]).collect();
        assert_eq!(ids, made.each_ref(), "oldest first, over {era}: {ran:?}");
        assert!(listed.iter().all(|task| task["status"] == "input_required"), "{ran:?}");
    }
    // Any protocol version can show a listed task.
    for id in &made {
        let ran = run(&third, &["tasks", "get", id, "--server", &stage.url]);
        assert!(ran.code == 0 && ran.out.contains("input required"), "{ran:?}");
    }
    let ran = run(&machine(eve), &list);
    assert_eq!(
        (ran.code, ran.out.as_str(), ran.err.as_str()),
        (0, "", "no saved calls or tasks\n")
    );
    let ran = run(&machine(eve), &[&list[..], &["--json"]].concat());
    assert_eq!((ran.code, ran.out.as_str()), (0, "[]\n"), "{ran:?}");
}

#[test]
fn server_without_task_list_is_reported_with_remedy() {
    let (outlive, stage) = (Outlive::new(), Stage::start(&[]));
    let list = ["tasks", "list", "--server", &stage.url];
    for list in [&list[..], &[&list[..], &["--json"]].concat()] {
        let ran = outlive.run(list);
        assert!(ran.code == 2 && ran.out.is_empty(), "{ran:?}");
        assert!(ran.err.contains("does not list tasks for this caller"), "{ran:?}");
        assert!(ran.err.contains("try: ") && ran.err.contains("--token-env"), "{ran:?}");
    }
    assert_eq!(outlive.run(&["call", "--detach", &stage.url, "order_task"]).code, 0);
    let ran = outlive.run(&list);
    assert!(ran.code == 0 && ran.out.contains("order_task"), "{ran:?}");
    assert!(ran.err.contains("showing only the tasks of saved calls"), "{ran:?}");
}

#[test]
fn tasks_watch_of_server_accepts_ids_or_watches_all() {
    let (outlive, stage, file) = named_caller();
    let there = ["--protocol-version", "2025-11-25", "--token-file", file.as_str()];
    let call = ["call", "--detach", &stage.url, "count", "to=4", &hold(&outlive.folder)];
    assert_eq!(outlive.run(&[&call[..], &there].concat()).code, 0);
    let written = outlive.written();
    let name = written[0]["task"].as_str().unwrap();
    // Another user of the program has the task ID, but no saved call.
    let other = Outlive::new();
    let watch = [&["tasks", "watch", "--server", &stage.url][..], &there].concat();
    let watching = [&watch[..], &[&watch[..], &[name, "--json"]].concat()].map(|watch| {
        let mut program = other.command(watch).spawn().unwrap();
        let mut lines = BufReader::new(program.stdout.take().unwrap()).lines();
        let first = lines.next().unwrap().unwrap();
        assert!(first.contains(name), "{first}");
        (program, lines)
    });
    outlive.folder.touch("hold");
    for (program, lines) in watching {
        let last = lines.last().unwrap().unwrap();
        assert!(last.contains(name) && last.contains("completed"), "{last}");
        let ended = program.wait_with_output().unwrap();
        let result = format!("outlive tasks result {name} --server {}", stage.url);
        assert!(String::from_utf8_lossy(&ended.stderr).contains(&result), "{ended:?}");
    }
    let ran = other.run(&watch);
    assert!(ran.code == 0 && ran.err.contains("no saved calls or tasks"), "{ran:?}");
}

#[test]
fn unknown_or_ambiguous_handle_is_rejected_with_remedy() {
    let (outlive, stage) = (Outlive::new(), Stage::start(&[]));
    let ran = outlive.run(&["tasks", "result"]);
    assert!(ran.code == 2 && ran.err.contains("no saved calls"), "{ran:?}");
    for _ in 0..2 {
        assert_eq!(outlive.run(&["call", "--detach", &stage.url, "order_task"]).code, 0);
    }
    let ran = outlive.run(&["tasks", "result"]);
    assert!(
        ran.code == 2 && ran.err.contains("2 saved calls") && ran.err.contains("tasks list"),
        "{ran:?}"
    );
    let ran = outlive.run(&["tasks", "get", "nothing"]);
    assert!(ran.code == 2 && ran.err.contains("`nothing`"), "{ran:?}");
    let first = outlive.written()[0]["handle"].as_str().unwrap().to_owned();
    assert_eq!(outlive.run(&["tasks", "remove", &first]).code, 0);
    assert_eq!(outlive.written().len(), 1);
}
