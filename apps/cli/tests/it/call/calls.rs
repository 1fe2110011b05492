//! Arguments, results, errors and exit codes, as a script sees them.

use std::{
    io::{BufRead, BufReader, Read, Write},
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use super::stage::{ERAS, Outlive, Stage, program};

const SUM: &str = "{\n  \"sum\": 3\n}\n";

#[test]
fn call_accepts_url_command_line_and_command_after_dashes() {
    let (outlive, stage) = (Outlive::new(), Stage::start(&[]));
    let command = format!("'{}' --stdio", program());
    for era in ERAS {
        let ran = outlive
            .says(&["call", "--protocol-version", era, &stage.url, "add", "a=1", "b=2"], SUM);
        assert_eq!(ran.err, "", "no messages");
        let ran =
            outlive.says(&["call", "--protocol-version", era, &command, "add", "a=1", "b=2"], SUM);
        assert_eq!(ran.err, "| stage is on stdio\n", "the server's standard error is passed on");
        let program = program();
        outlive.says(
            &["call", "--protocol-version", era, "add", "a=1", "b=2", "--", &program, "--stdio"],
            SUM,
        );
    }
    assert!(outlive.written().is_empty(), "an ended call is not saved");
}

#[test]
fn call_arguments_are_typed_by_tool_schema() {
    let (outlive, stage) = (Outlive::new(), Stage::start(&[]));
    let words = [
        "text=007",
        "whole=-7",
        "number=1.5",
        "yes=true",
        "tags=a",
        "tags=b c",
        "size=large",
        "any:=[1,null]",
    ];
    let mut call = vec!["call", &stage.url, "echo"];
    call.extend(words);
    let said: Value = serde_json::from_str(&outlive.run(&call).out).unwrap();
    let expected = json!({"text": "007", "whole": -7, "number": 1.5, "yes": true,
        "tags": ["a", "b c"], "size": "large", "any": [1, null]});
    assert_eq!(said, expected);
}

#[test]
fn arguments_object_is_read_from_word_file_or_stdin() {
    let (outlive, stage) = (Outlive::new(), Stage::start(&[]));
    let object = r#"{"a": 1, "b": 2}"#;
    let file = outlive.folder.file("arguments.json");
    std::fs::write(&file, object).unwrap();
    outlive.says(&["call", &stage.url, "add", object], SUM);
    outlive.says(&["call", &stage.url, "add", &format!("@{file}")], SUM);
    // `--json` before the object also makes the result JSON.
    let whole = outlive.json(&["call", &stage.url, "add", "--json", object]);
    assert_eq!(whole["structuredContent"], json!({"sum": 3}));
    let mut reading =
        outlive.command(&["call", &stage.url, "add", "-"]).stdin(Stdio::piped()).spawn().unwrap();
    reading.stdin.take().unwrap().write_all(object.as_bytes()).unwrap();
    assert_eq!(String::from_utf8(reading.wait_with_output().unwrap().stdout).unwrap(), SUM);
}

#[test]
fn invalid_arguments_are_rejected_with_remedy() {
    let (outlive, stage) = (Outlive::new(), Stage::start(&[]));
    for (words, why, remedy) in [
        (&["ad", "a=1"][..], "has no tool `ad`", "add, echo"),
        (&["add", "a=1"], "`add` requires the argument `b` (integer)", "a (integer), b (integer)"),
        (&["add", "a=1", "b=2", "c=3"], "`add` has no argument `c`", "a (integer), b (integer)"),
        (&["add", "a=one", "b=2"], "`a` must be an integer, not `one`", "a=3"),
        (&["echo", "size=huge"], "`size` cannot be `huge`", "small, large"),
        (&["add", "{\"a\": 1"], "the command line is not a JSON object", "{\"key\": 1}"),
    ] {
        let mut call = vec!["call", stage.url.as_str()];
        call.extend(words);
        let ran = outlive.run(&call);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{ran:?}");
        assert!(ran.err.contains(why) && ran.err.contains(remedy), "{ran:?}");
    }
}

#[test]
fn failed_tool_exits_with_code_1() {
    let (outlive, stage) = (Outlive::new(), Stage::start(&[]));
    for era in ERAS {
        let ran = outlive.run(&["call", "--protocol-version", era, &stage.url, "fail"]);
        assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{ran:?}");
        assert!(ran.err.contains("error: out of paper"), "{ran:?}");
        let ran = outlive.run(&["call", "--protocol-version", era, &stage.url, "fail", "--json"]);
        let whole: Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!((ran.code, &whole["isError"]), (1, &json!(true)), "{ran:?}");
    }
}

#[test]
fn binary_content_is_described_and_piped_text_is_exact() {
    let (outlive, stage) = (Outlive::new(), Stage::start(&[]));
    let out = "a picture:\n[image: image/png, 3 bytes]\n\u{1b}[31mred\u{1b}[0m\n";
    outlive.says(&["call", &stage.url, "picture"], out);
}

#[test]
fn partial_results_are_printed_once_while_tool_runs() {
    let (outlive, stage) = (Outlive::new(), Stage::start(&[]));
    let command = format!("'{}' --stdio", program());
    for (number, server) in [stage.url.as_str(), &command].into_iter().enumerate() {
        let hold = format!("hold-{number}");
        let file = format!("hold={}", outlive.folder.file(&hold));
        let mut calling =
            outlive.command(&["call", server, "count", "to=4", &file]).spawn().unwrap();
        let mut said = BufReader::new(calling.stdout.take().unwrap());
        let mut first = String::new();
        for _ in 0..2 {
            said.read_line(&mut first).unwrap();
        }
        assert_eq!(first, "line 1\nline 2\n", "the tool waits in the middle");
        outlive.folder.touch(&hold);
        let mut rest = String::new();
        said.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "line 3\nline 4\n");
        assert!(calling.wait().unwrap().success());
    }
    // With `--json`, the result is printed only at the end.
    let whole = outlive.json(&["call", &stage.url, "count", "to=3", "--json"]);
    assert_eq!(whole["content"].as_array().unwrap().len(), 3);
}

#[test]
fn legacy_call_prints_all_content_at_the_end() {
    let (outlive, stage) = (Outlive::new(), Stage::start(&[]));
    let call = ["call", "--protocol-version", "2025-11-25", &stage.url, "count", "to=3"];
    outlive.says(&call, "line 1\nline 2\nline 3\n");
}

#[test]
fn unreachable_server_exits_with_code_3_and_remedy() {
    let outlive = Outlive::new();
    for (server, remedy) in [
        ("http://127.0.0.1:9/mcp", "check that a server runs at"),
        ("no-such-program-of-ours --stdio", "a program that serves MCP"),
        ("localhost:8000/mcp", "http://localhost:8000/mcp"),
    ] {
        let ran = outlive.run(&["call", server, "add", "a=1", "b=2"]);
        assert_eq!((ran.code, ran.out.as_str()), (3, ""), "{ran:?}");
        assert!(ran.err.contains(remedy), "{ran:?}");
    }
    let ran = outlive.run(&["call", "ftp://example.com", "add"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    let ran =
        outlive.run(&["call", "--protocol-version", "2020-01-01", "http://127.0.0.1:9/mcp", "add"]);
    assert!(ran.code == 2 && ran.err.contains("2026-07-28"), "{ran:?}");
}

#[test]
fn token_is_read_from_environment_file_or_header() {
    let token = "adas-token-0123456789";
    let (outlive, stage) = (Outlive::new(), Stage::start(&["--token", token]));
    let call = ["call", stage.url.as_str(), "add", "a=1", "b=2"];
    let ran = outlive.run(&call);
    assert!(ran.code == 3 && ran.err.contains("--token-env"), "{ran:?}");
    let file = outlive.folder.file("token");
    std::fs::write(&file, format!("{token}\n")).unwrap();
    outlive.says(&[&call[..], &["--token-file", &file]].concat(), SUM);
    let header = format!("Authorization: Bearer {token}");
    outlive.says(&[&call[..], &["--header", &header]].concat(), SUM);
    let with = |command: &mut Command| command.env("OUR_TOKEN", token).output().unwrap();
    let ran = with(&mut outlive.command(&[&call[..], &["--token-env", "OUR_TOKEN"]].concat()));
    assert_eq!(String::from_utf8(ran.stdout).unwrap(), SUM);
    let ran = outlive.run(&[&call[..], &["--token-env", "NOT_THERE"]].concat());
    assert!(ran.code == 2 && ran.err.contains("NOT_THERE"), "{ran:?}");
}

#[test]
fn call_timeout_cancels_call_and_keeps_task() {
    let (outlive, stage) = (Outlive::new(), Stage::start(&[]));
    let hold = format!("hold={}", outlive.folder.file("never"));
    let ran = outlive.run(&["call", &stage.url, "hang", &hold, "--timeout", "300ms"]);
    assert!(ran.code == 3 && ran.err.contains("--timeout"), "{ran:?}");
    assert!(outlive.written().is_empty(), "the call was cancelled");
    let ran = outlive.run(&["call", &stage.url, "count", "to=2", &hold, "--timeout", "1s"]);
    assert!(ran.code == 3 && ran.err.contains("outlive tasks result "), "{ran:?}");
    assert_eq!(outlive.written().len(), 1, "the task keeps running");
}

#[test]
fn help_of_client_commands_has_examples() {
    let outlive = Outlive::new();
    for command in [
        &["call"][..],
        &["inspect"],
        &["tasks"],
        &["tasks", "list"],
        &["tasks", "get"],
        &["tasks", "watch"],
        &["tasks", "answer"],
        &["tasks", "cancel"],
        &["tasks", "result"],
        &["tasks", "remove"],
    ] {
        let ran = outlive.run(&[command, &["--help"]].concat());
        assert!(ran.code == 0 && ran.out.contains("Example"), "{command:?}: {ran:?}");
    }
}
