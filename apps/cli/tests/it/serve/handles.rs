//! `outlive call` and `outlive tasks` on real commands: cancelled, failed, and detached.

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    process::Stdio,
};

use serde_json::Value;

use super::{Place, until};
use crate::call::{
    stage::{ERAS, Outlive, Ran},
    tmux::Terminal,
};

const COMMANDS: &str = r#"
[tools.sleeper]
description = "Prints a line, and sleeps."
command = ["sh", "-c", "echo begun; sleep 1000"]
kill_grace = "1s"
task = "always"
env = { MARK = "1" }

[tools.counter]
description = "Prints a line, waits for a file, and counts on."
command = ["sh", "-c", "echo 1; while ! test -e go; do sleep 0.05; done; echo 2; echo 3"]
task = "always"

[tools.failing]
description = "Prints two lines and fails."
command = ["sh", "-c", "echo one; echo two; exit 7"]
task = "always"

[tools.quickly]
description = "Prints two lines and fails before it is a task."
command = ["sh", "-c", "echo one; echo two; exit 7"]
task = "never"
"#;

/// Returns the store URL of the server.
fn store(place: &Place) -> String {
    format!("sqlite:{}", place.folder.join("data").join("tasks.db").display())
}

/// Returns the states of all tasks in the store of the server.
fn stored(outlive: &Outlive, place: &Place) -> Vec<String> {
    let listed = outlive.run(&["store", "list", &store(place), "--json"]);
    let state = |line: &str| {
        let task: Value = serde_json::from_str(line).unwrap();
        task["state"].as_str().unwrap().to_owned()
    };
    listed.out.lines().map(state).collect()
}

fn detach(outlive: &Outlive, place: &Place, era: &str, tool: &str) -> String {
    let ran = outlive.run(&["call", "--detach", "--protocol-version", era, place.url(), tool]);
    assert_eq!(ran.code, 0, "{ran:?}");
    ran.out.trim().to_owned()
}

#[tokio::test]
async fn cancelled_command_is_cancelled_for_caller_and_in_store() {
    for era in ERAS {
        let (place, outlive) = (Place::new(COMMANDS), Outlive::new());
        detach(&outlive, &place, era, "sleeper");
        until("the command runs", || (!place.left_over().is_empty()).then_some(())).await;
        let ran = outlive.run(&["tasks", "cancel", "--protocol-version", era]);
        assert_eq!((ran.code, ran.err.as_str()), (4, "cancelled\n"), "{era}: {ran:?}");
        assert_eq!(stored(&outlive, &place), ["cancelled"], "{era}");
        until("the command has ended", || place.left_over().is_empty().then_some(())).await;
    }
}

#[tokio::test]
async fn command_cancelled_with_ctrl_c_exits_with_code_4() {
    let (place, outlive) = (Place::new(COMMANDS), Outlive::new());
    let terminal = Terminal::run(&outlive, &["call", place.url(), "sleeper"]);
    terminal.until("begun");
    terminal.press(&["C-c"]);
    terminal.until("cancel the task");
    terminal.press(&["Down", "Down", "Enter"]);
    let screen = terminal.until("EXIT:");
    assert!(screen.contains("EXIT:4") && screen.contains("cancelled"), "{screen}");
    assert_eq!(stored(&outlive, &place), ["cancelled"]);
}

#[tokio::test]
async fn saved_call_resumes_with_its_protocol_version() {
    for era in ERAS {
        let (place, outlive) = (Place::new(COMMANDS), Outlive::new());
        detach(&outlive, &place, era, "counter");
        fs::write(place.folder.join("go"), "").unwrap();
        outlive.says(&["tasks", "result"], "1\n2\n3\n");
        detach(&outlive, &place, era, "sleeper");
        let ran = outlive.run(&["tasks", "cancel"]);
        assert_eq!((ran.code, ran.err.as_str()), (4, "cancelled\n"), "{era}: {ran:?}");
    }
}

#[tokio::test]
async fn handle_rejected_by_server_is_kept() {
    let (place, outlive) = (Place::new(COMMANDS), Outlive::new());
    let handle = detach(&outlive, &place, "2025-11-25", "counter");
    // One version has no task methods; the other one does not have this task.
    for era in ["2025-06-18", "2026-07-28"] {
        let ran = outlive.run(&[
            "tasks",
            "result",
            &handle,
            "--protocol-version",
            era,
            "--timeout",
            "1s",
        ]);
        assert!(ran.code != 0, "{era}: {ran:?}");
    }
    fs::write(place.folder.join("go"), "").unwrap();
    outlive.says(&["tasks", "result", &handle], "1\n2\n3\n");
}

#[tokio::test]
async fn handle_of_stdio_server_works_in_every_folder() {
    let (place, outlive) = (Place::unserved(COMMANDS), Outlive::new());
    fs::create_dir(place.folder.join("elsewhere")).unwrap();
    let server = format!("'{}' serve outlive.toml --stdio", env!("CARGO_BIN_EXE_outlive"));
    let run = |folder: &str, words: &[&str]| {
        Ran::of(outlive.command(words).current_dir(place.folder.join(folder)).output().unwrap())
    };
    let detached = run("", &["call", "--detach", &server, "counter"]);
    assert_eq!(detached.code, 0, "{detached:?}");
    fs::write(place.folder.join("go"), "").unwrap();
    let ran = run("elsewhere", &["tasks", "result"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "1\n2\n3\n"), "{ran:?}");
}

#[tokio::test]
async fn call_with_closed_pipe_detaches_and_prints_remedy() {
    let (place, outlive) = (Place::new(COMMANDS), Outlive::new());
    let mut calling = outlive.command(&["call", place.url(), "counter"]).spawn().unwrap();
    let mut out = BufReader::new(calling.stdout.take().unwrap());
    let mut first = String::new();
    out.read_line(&mut first).unwrap();
    assert_eq!(first, "1\n");
    // As `head -1` does. The command prints nothing more until a file exists.
    drop(out);
    let ended = Ran::of(calling.wait_with_output().unwrap());
    assert_eq!(ended.code, 141, "{ended:?}");
    assert!(ended.err.contains("outlive tasks result"), "{ended:?}");
    fs::write(place.folder.join("go"), "").unwrap();
    outlive.says(&["tasks", "result"], "1\n2\n3\n");
}

#[tokio::test]
async fn output_failure_is_reported_at_once_and_handle_is_kept() {
    let (place, outlive) = (Place::new(COMMANDS), Outlive::new());
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let mut command = outlive.command(&["call", place.url(), "counter"]);
    // The command still runs: the file that it waits for does not exist.
    let ended = Ran::of(command.stdout(full).output().unwrap());
    assert_eq!(ended.code, 1, "{ended:?}");
    assert!(ended.err.contains("No space left on device"), "{ended:?}");
    assert!(ended.err.contains("outlive tasks result"), "{ended:?}");
    fs::write(place.folder.join("go"), "").unwrap();
    outlive.says(&["tasks", "result", "--keep-handle"], "1\n2\n3\n");
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let ended = Ran::of(outlive.command(&["tasks", "result"]).stdout(full).output().unwrap());
    assert_eq!(ended.code, 1, "{ended:?}");
    outlive.says(&["tasks", "result"], "1\n2\n3\n");
}

#[tokio::test]
async fn failed_command_prints_output_and_one_error() {
    let (place, outlive) = (Place::new(COMMANDS), Outlive::new());
    let handle = detach(&outlive, &place, "2026-07-28", "failing");
    let quick = outlive.run(&["call", place.url(), "quickly"]);
    let task = outlive.run(&["tasks", "result", &handle, "--keep-handle"]);
    let again = outlive.run(&["tasks", "result", &handle, "--keep-handle"]);
    for ran in [quick, task, again] {
        assert_eq!((ran.code, ran.out.as_str()), (1, "one\ntwo\n"), "{ran:?}");
        assert_eq!(ran.err.matches("error: ").count(), 1, "{ran:?}");
        assert!(ran.err.contains('7'), "{ran:?}");
    }
    let seen = outlive.json(&["tasks", "get", "--json"]);
    assert_eq!(seen["state"], "failed", "{seen}");
}

#[tokio::test]
async fn cancelled_command_prints_output_and_one_error() {
    let (place, outlive) = (Place::new(COMMANDS), Outlive::new());
    detach(&outlive, &place, "2026-07-28", "sleeper");
    let id = outlive.written()[0]["task"].as_str().unwrap().to_owned();
    let printed = || {
        let mut watching = outlive.command(&["tasks", "result"]);
        let mut watching = watching.stderr(Stdio::null()).spawn().unwrap();
        let mut one = [0; 6];
        watching.stdout.take().unwrap().read_exact(&mut one).unwrap();
        let _ = watching.kill();
        watching.wait().unwrap();
    };
    printed();
    let cancelled = outlive.run(&["tasks", "cancel", &id, "--server", place.url()]);
    assert_eq!(cancelled.code, 4, "{cancelled:?}");
    let ran = outlive.run(&["tasks", "result", "--keep-handle"]);
    assert_eq!((ran.code, ran.out.as_str()), (4, "begun\n"), "{ran:?}");
    assert_eq!(ran.err.matches("error: ").count(), 1, "{ran:?}");
    let seen = outlive.json(&["tasks", "get", "--json"]);
    assert_eq!(seen["state"], "cancelled", "{seen}");
    let again = outlive.run(&["tasks", "result"]);
    assert_eq!(again.code, 4, "{again:?}");
    assert!(outlive.written().is_empty());
}
