//! Parsing of the command line, and its errors.

use super::stage::{Outlive, Stage, program};

#[test]
fn structured_result_repeating_text_is_printed_once() {
    let (outlive, stage) = (Outlive::new(), Stage::start(&[]));
    outlive.says(&["call", &stage.url, "wrapped"], "3\n");
}

#[test]
fn argument_violating_schema_is_rejected_before_sending() {
    let (outlive, stage) = (Outlive::new(), Stage::start(&[]));
    for words in [&["to=-1"][..], &["to:=1.5"], &[r#"{"to": "x"}"#]] {
        let ran = outlive.run(&[&["call", stage.url.as_str(), "count"], words].concat());
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{ran:?}");
        assert!(ran.err.contains("`to` "), "{ran:?}");
        assert!(ran.err.contains("use its arguments: to (integer, at least 0)"), "{ran:?}");
    }
}

#[test]
fn tool_argument_written_as_option_is_explained() {
    let ran = Outlive::new().run(&["call", "http://127.0.0.1:9/mcp", "count", "--from", "3"]);
    assert!(ran.code == 2 && ran.err.contains("try: write from=3 if"), "{ran:?}");
}

#[test]
fn version_option_prints_version_of_program() {
    let outlive = Outlive::new();
    let version = format!("outlive {}\n", env!("CARGO_PKG_VERSION"));
    for command in ["call", "inspect"] {
        outlive.says(&[command, "--version"], &version);
    }
}

#[test]
fn supervise_command_is_hidden() {
    let outlive = Outlive::new();
    let ran = outlive.run(&["serv"]);
    assert!(ran.code == 2 && ran.err.contains("serve"), "{ran:?}");
    let completions = outlive.run(&["completions", "bash"]);
    assert_eq!(completions.code, 0);
    assert!(!ran.err.contains("supervise") && !completions.out.contains("supervise"));
}

#[test]
fn command_line_containing_url_is_started() {
    let outlive = Outlive::new();
    let server = format!("'{}' --stdio http://127.0.0.1:9/mcp", program());
    outlive.says(&["call", &server, "wrapped"], "3\n");
}

#[test]
fn wrong_scheme_and_wrong_path_have_specific_remedies() {
    let (outlive, stage) = (Outlive::new(), Stage::start(&[]));
    let ran = outlive.run(&["call", &stage.url.replace("http:", "https:"), "wrapped"]);
    let remedy = format!("the server does not use TLS; write {}", stage.url);
    assert!(ran.code == 3 && ran.err.contains(&remedy), "{ran:?}");
    let ran = outlive.run(&["call", &stage.url.replace("/mcp", "/other"), "wrapped"]);
    assert!(ran.code == 3 && ran.err.contains("but not with MCP"), "{ran:?}");
}

#[test]
fn login_to_server_without_authorization_server_is_reported() {
    let outlive = Outlive::new();
    let open = Stage::start(&[]);
    let ran = outlive.run(&["login", &open.url, "--no-browser"]);
    assert!(ran.code == 1 && ran.err.contains("requires no login"), "{ran:?}");
    let guarded = Stage::start(&["--token", "adas-token-0123456789"]);
    let ran = outlive.run(&["login", &guarded.url, "--no-browser"]);
    assert!(ran.code == 3 && ran.err.contains("names no authorization server"), "{ran:?}");
    assert!(ran.err.contains("--token-env"), "{ran:?}");
}
