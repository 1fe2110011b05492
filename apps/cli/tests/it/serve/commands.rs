//! Commands and their results.

use std::fs;

use outlive::client::{Client, request::result_text, tasks::TaskEvent};
use serde_json::{Value, json};

use super::{Place, stdio_server, until};

async fn call(client: &Client, tool: &str, arguments: Value) -> (String, bool) {
    let result = client.call_tool(tool, arguments).await.unwrap();
    (result_text(&result), result.is_error == Some(true))
}

#[tokio::test]
async fn slow_command_is_task_that_streams_lines() {
    let place = Place::new(
        r#"
[tools.count]
description = "Counts."
command = ["sh", "-c", "for n in 1 2 3 4 5 6; do echo $n; echo at $n >&2; sleep 0.2; done"]
task_after = "300ms"
"#,
    );
    let client = place.client().await;
    let mut stream = client.stream_tool("count", json!({})).await.unwrap();
    let mut seen = Vec::new();
    while let Some(segment) = stream.next().await {
        seen.push(segment.unwrap());
    }
    let result = stream.finish().await.unwrap();
    assert_eq!(seen.len(), 6, "{seen:?}");
    assert_eq!(result_text(&result), "1\n2\n3\n4\n5\n6");
    assert_eq!(result.content.len(), 6);
}

#[tokio::test]
async fn quick_command_returns_single_text() {
    let place = Place::new(
        "[tools.two]\ndescription = \"Two lines.\"\ncommand = [\"sh\", \"-c\", \"echo a; echo b\"]\n",
    );
    let client = place.client().await;
    let result = client.call_tool("two", json!({})).await.unwrap();
    assert_eq!(result.content.len(), 1);
    assert_eq!(result_text(&result), "a\nb");
    // The job's files are deleted.
    until("the job is deleted", || {
        let jobs = fs::read_dir(place.folder.join("data/jobs")).ok()?;
        let jobs = jobs.flatten().filter(|job| !job.file_name().to_string_lossy().starts_with('.'));
        (jobs.count() == 0).then_some(())
    })
    .await;
}

#[tokio::test]
async fn standard_error_becomes_status_message() {
    let place = Place::new(
        r#"
[tools.build]
description = "Builds."
command = ["sh", "-c", "echo linking >&2; while [ ! -e go ]; do sleep 0.05; done; echo built"]
task = "always"
"#,
    );
    let client = place.client().await;
    let mut task = client.start_tool("build", json!({})).await.unwrap();
    let mut events = task.events();
    loop {
        match events.next().await.unwrap().unwrap() {
            TaskEvent::Status(status) if status.message.as_deref() == Some("linking") => {
                fs::write(place.folder.join("go"), "").unwrap();
            }
            TaskEvent::Done(result) => break assert_eq!(result_text(&result), "built"),
            _ => {}
        }
    }
}

/// The server may learn of the end of the command before its last line.
#[tokio::test]
async fn last_line_of_command_that_fails_at_once_is_the_status_message() {
    let place = Place::new(
        r#"
[tools.fail]
description = "Fails at once."
command = ["sh", "-c", "echo working >&2; echo '{\"progress\": 1, \"message\": \"packing\"}' >&3; echo broken >&2; exit 3"]
task = "always"
"#,
    );
    let client = place.client().await;
    for attempt in 0..30 {
        let mut task = client.start_tool("fail", json!({})).await.unwrap();
        let id = task.task_id().unwrap().to_owned();
        assert_eq!(task.wait().await.unwrap().is_error, Some(true));
        let task = client.request("tasks/get", json!({"taskId": id})).await.unwrap();
        let task: Value = serde_json::from_str(task.get()).unwrap();
        assert_eq!(task["statusMessage"], "broken", "{attempt}: {task}");
    }
}

#[tokio::test]
async fn exit_code_and_signal_determine_outcome() {
    let place = Place::new(
        r#"
[tools.code]
description = "Exits."
command = ["sh", "-c", "echo before; echo trouble >&2; exit $0", "{code}"]
success_codes = [0, 3]
[tools.code.arguments]
code = { type = "integer" }

[tools.signal]
description = "Is ended by a signal."
command = ["sh", "-c", "kill -SEGV $$"]

[tools.missing]
description = "Is not there."
command = ["./no-such-program"]
"#,
    );
    let client = place.client().await;
    assert_eq!(call(&client, "code", json!({"code": 3})).await, ("before".to_owned(), false));
    let (text, failed) = call(&client, "code", json!({"code": 4})).await;
    assert!(failed);
    assert_eq!(
        text,
        "before\nthe command exited with code 4; its last output on standard error:\ntrouble"
    );
    let (text, failed) = call(&client, "signal", json!({})).await;
    assert!(failed && text.contains("signal 11"), "{text}");
    let (text, failed) = call(&client, "missing", json!({})).await;
    assert!(failed && text.contains("cannot start the command"), "{text}");
}

#[tokio::test]
async fn json_output_is_structured_content() {
    let place = Place::new(
        r#"
[tools.sum]
description = "Sums."
command = ["sh", "-c", "printf '{\"sum\": %d}' $(($0 + $1))", "{a}", "{b}"]
output_schema = { type = "object", properties = { sum = { type = "integer" } }, required = ["sum"] }
[tools.sum.arguments]
a = { type = "integer" }
b = { type = "integer", default = 2 }

[tools.broken]
description = "Prints something else."
command = ["echo", "hello"]
output = "json"
"#,
    );
    let client = place.client().await;
    let result = client.call_tool("sum", json!({"a": 40})).await.unwrap();
    assert_eq!(result.structured_content.unwrap().get(), r#"{"sum": 42}"#);
    let tools = client.list_tools().collect().await.unwrap();
    let sum = tools.iter().find(|tool| tool.name == "sum").unwrap();
    assert!(sum.output_schema.as_ref().unwrap().get().contains("integer"));
    let (text, failed) = call(&client, "broken", json!({})).await;
    assert!(failed && text.contains("must print only JSON"), "{text}");
}

#[tokio::test]
async fn huge_output_is_cut_with_bounded_memory() {
    let place = Place::new(
        r#"
[tools.flood]
description = "Prints a gigabyte."
command = ["sh", "-c", "head -c 1000000000 /dev/zero | tr '\\0' 'x' | fold -w 99"]
max_output = "64 KiB"
"#,
    );
    let client = place.client().await;
    let mut task = client.start_tool("flood", json!({})).await.unwrap();
    let result = task.wait().await.unwrap();
    let text = result_text(&result);
    // 1,000,000,000 letters and a newline after every 99th, of which 64 KiB are kept.
    let printed = 1_000_000_000_u64 + 1_000_000_000 / 99;
    let cut = text.lines().find(|line| line.starts_with("[output cut: ")).unwrap();
    let dropped: u64 = cut.split(' ').nth(2).unwrap().parse().unwrap();
    assert!((printed - 65_536 - 1..=printed - 65_000).contains(&dropped), "{cut}");
    assert!(cut.contains("`max_output`"), "{cut}");
    // The end of the output is kept, too.
    assert!(text.ends_with(&format!("\n{}", "x".repeat(1_000_000_000 % 99))));
    assert!(text.len() < 70_000);
    let status = fs::read_to_string(format!("/proc/{}/status", place.pid())).unwrap();
    let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    let peak: u64 = peak.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert!(peak < 200_000, "the server grew to {peak} KiB");
}

#[tokio::test]
async fn invalid_utf8_in_output_is_replaced() {
    let place = Place::new(
        r#"
[tools.bytes]
description = "Prints bytes."
command = ["printf", '\377\000a\303\244\n\302']
"#,
    );
    let (text, failed) = call(&place.client().await, "bytes", json!({})).await;
    assert!(!failed);
    assert_eq!(
        text, "\u{fffd}\u{fffd}aä\n\u{fffd}",
        "including an incomplete character at the end"
    );
}

#[tokio::test]
async fn stdin_is_passed_closed_and_may_stay_unread() {
    let place = Place::new(
        r#"
[tools.sort]
description = "Sorts."
command = ["sort"]
stdin = "{lines}"
[tools.sort.arguments]
lines = { type = "string" }

[tools.deaf]
description = "Never reads."
command = ["sh", "-c", "sleep 0.3; echo done"]
stdin = "{lines}"
[tools.deaf.arguments]
lines = { type = "string" }

[tools.nothing]
description = "Reads where there is nothing."
command = ["cat"]
"#,
    );
    let client = place.client().await;
    assert_eq!(call(&client, "sort", json!({"lines": "b\na"})).await.0, "a\nb");
    let much = "x".repeat(100_000);
    assert_eq!(call(&client, "deaf", json!({"lines": much})).await.0, "done");
    assert_eq!(call(&client, "nothing", json!({})).await, (String::new(), false));
}

#[tokio::test]
async fn command_gets_working_folder_and_no_server_secrets() {
    let place = Place::new(
        r#"
[tools.where]
description = "Says where it is."
command = ["pwd"]
working_dir = "sub"

[tools.env]
description = "Shows its environment."
command = ["env"]
env = { GREETING = "hello {who}" }
[tools.env.arguments]
who = { type = "string" }
"#,
    );
    fs::create_dir(place.folder.join("sub")).unwrap();
    let client = place.client().await;
    let (text, _) = call(&client, "where", json!({})).await;
    assert!(text.ends_with("/sub"), "{text}");
    let (text, _) = call(&client, "env", json!({"who": "a b"})).await;
    let names: Vec<&str> = text.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
    assert!(text.contains("GREETING=hello a b"), "{text}");
    assert!(names.contains(&"PATH"), "{text}");
    // The test runner sets this variable, which is not passed on by default.
    assert!(std::env::var("CARGO_PKG_NAME").is_ok());
    assert!(!names.contains(&"CARGO_PKG_NAME"), "{text}");
}

#[tokio::test]
async fn calls_above_concurrency_limit_wait_for_slot() {
    let place = Place::new(
        r#"
[tools.one]
description = "One at a time."
command = ["sh", "-c", "mkdir busy || echo two at once; sleep 0.2; rmdir busy; echo done"]
max_concurrent = 1
"#,
    );
    let client = place.client().await;
    let calls = (0..5).map(|_| {
        let client = client.clone();
        tokio::spawn(async move { call(&client, "one", json!({})).await })
    });
    for call in calls.collect::<Vec<_>>() {
        assert_eq!(call.await.unwrap(), ("done".to_owned(), false));
    }
}

#[tokio::test]
async fn command_exceeding_timeout_is_ended() {
    let place = Place::new(
        "[tools.long]\ndescription = \"Sleeps.\"\ncommand = [\"sleep\", \"1000\"]\ntimeout = \"300ms\"\nenv = { MARK = \"1\" }\n",
    );
    let (text, failed) = call(&place.client().await, "long", json!({})).await;
    assert!(failed);
    assert_eq!(text, "the command exceeded its timeout of 300ms and was ended");
    assert_eq!(place.left_over(), Vec::<String>::new());
}

#[tokio::test]
async fn health_and_local_metrics_require_no_token() {
    let place = Place::unserved(
        "[tools.t]\ndescription = \"d\"\ncommand = [\"true\"]\n[server]\ntoken_file = \"tokens\"\n",
    );
    fs::write(place.folder.join("tokens"), "ada 0123456789abcdef\n").unwrap();
    let mut place = place;
    place.start();
    let base = place.url().trim_end_matches("/mcp").to_owned();
    for (path, says) in [("/healthz", "alive"), ("/readyz", "ready"), ("/metrics", "outlive_tasks")]
    {
        let (status, body) = get(&format!("{base}{path}")).await;
        assert_eq!(status, 200, "{path}");
        assert!(body.contains(says), "{path}: {body}");
    }
    let refused = super::builder().connect(place.url()).await;
    assert!(refused.is_err(), "a client without a token is rejected");
    let named = super::builder().token("0123456789abcdef").connect(place.url()).await.unwrap();
    assert_eq!(call(&named, "t", json!({})).await, (String::new(), false));
}

async fn get(url: &str) -> (u16, String) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let rest = url.trim_start_matches("http://");
    let (host, path) = rest.split_at(rest.find('/').unwrap());
    let mut stream = tokio::net::TcpStream::connect(host).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    (answer[9..12].parse().unwrap(), answer)
}

/// A client that starts the server itself.
async fn stdio_client(place: &Place) -> Client {
    super::builder().connect(stdio_server(place, env!("CARGO_BIN_EXE_outlive"), &[])).await.unwrap()
}

#[tokio::test]
async fn stdio_client_starts_its_server() {
    let place = Place::unserved(
        "[tools.hello]\ndescription = \"Greets.\"\ncommand = [\"echo\", \"hello\"]\n",
    );
    let client = stdio_client(&place).await;
    assert_eq!(call(&client, "hello", json!({})).await, ("hello".to_owned(), false));
    client.close().await;
}

#[tokio::test]
async fn repeated_call_on_stdio_after_its_result_runs_again() {
    let place = Place::unserved(
        "[tools.slow]\ndescription = \"Takes a while.\"\ntask_after = \"50ms\"\nshell = true\n\
         command = 'echo run >> runs; sleep 0.5; echo done'\n",
    );
    let client = stdio_client(&place).await;
    for runs in 1..=3 {
        assert_eq!(call(&client, "slow", json!({})).await, ("done".to_owned(), false));
        let recorded = fs::read_to_string(place.folder.join("runs")).unwrap();
        assert_eq!(recorded.lines().count(), runs, "a delivered result is not joined");
    }
    client.close().await;
}

/// A file size limit of 1 MiB acts like a full disk for the commands of the server.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn output_lost_to_a_full_disk_makes_the_result_an_error() {
    let place = Place::unserved(
        r#"
[tools.print]
description = "Prints two megabytes."
command = ["seq", "1", "300000"]
max_output = "8 MiB"
max_lines = 1000000
task = "never"
"#,
    );
    let script = "trap '' XFSZ; ulimit -f 2048; exec \"$0\" \"$@\"";
    let shell = ["-c", script, env!("CARGO_BIN_EXE_outlive")];
    let client = super::builder().connect(stdio_server(&place, "sh", &shell)).await.unwrap();
    let (text, failed) = call(&client, "print", json!({})).await;
    let end = text.lines().last().unwrap();
    assert!(failed && end.starts_with("[output is incomplete: "), "{failed} {end}");
    client.close().await;
}

#[tokio::test]
async fn progress_of_command_is_reported() {
    let place = Place::new(
        r#"
[tools.pack]
description = "Packs."
command = ["sh", "-c", "echo '{\"progress\": 1, \"total\": 2, \"message\": \"packing\"}' >&3; echo '@outlive {\"progress\": 2}'; sleep 0.2; echo packed"]
"#,
    );
    let client = place.client().await;
    let (tell, mut told) = tokio::sync::mpsc::channel(16);
    let call = client.call_tool("pack", json!({})).on_progress(move |progress| {
        let _ = tell.try_send(progress);
    });
    assert_eq!(result_text(&call.await.unwrap()), "@outlive {\"progress\": 2}\npacked");
    let progress = told.recv().await.unwrap();
    assert_eq!((progress.progress, progress.total), (1.0, Some(2.0)));
    assert_eq!(progress.message.as_deref(), Some("packing"));
}

#[test]
fn public_address_without_tokens_fails_at_start() {
    let place = Place::unserved("[tools.t]\ndescription = \"d\"\ncommand = [\"true\"]\n");
    let refused = std::process::Command::new(env!("CARGO_BIN_EXE_outlive"))
        .args(["serve", "--listen", "0.0.0.0:0", "--data-dir", "data"])
        .current_dir(&place.folder)
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(2));
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(said.contains("callers need no token") && said.contains("--token-file"), "{said}");
}
