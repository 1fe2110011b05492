//! What the words of a command line mean, and what is said of those that mean nothing.

use super::stage::{Outlive, Stage, program};

#[test]
fn structured_result_that_repeats_the_text_is_printed_once() {
    let (outlive, stage) = (Outlive::new(), Stage::start(&[]));
    outlive.says(&["call", &stage.url, "wrapped"], "3\n");
}

#[test]
fn argument_outside_its_schema_is_refused_before_it_is_sent() {
    let (outlive, stage) = (Outlive::new(), Stage::start(&[]));
    for words in [&["to=-1"][..], &["to:=1.5"], &[r#"{"to": "x"}"#]] {
        let ran = outlive.run(&[&["call", stage.url.as_str(), "count"], words].concat());
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{ran:?}");
        assert!(ran.err.contains("`to` "), "{ran:?}");
        assert!(ran.err.contains("its arguments are to (integer, at least 0)"), "{ran:?}");
    }
}

#[test]
fn option_that_is_an_argument_of_the_tool_is_explained() {
    let ran = Outlive::new().run(&["call", "http://127.0.0.1:9/mcp", "count", "--from", "3"]);
    assert!(ran.code == 2 && ran.err.contains("try: from=3, if"), "{ran:?}");
}

#[test]
fn version_without_a_protocol_version_is_that_of_the_program() {
    let outlive = Outlive::new();
    let version = format!("outlive {}\n", env!("CARGO_PKG_VERSION"));
    for command in ["call", "inspect"] {
        outlive.says(&[command, "--version"], &version);
    }
}

#[test]
fn supervisor_is_no_command_of_users() {
    let outlive = Outlive::new();
    let ran = outlive.run(&["serv"]);
    assert!(ran.code == 2 && ran.err.contains("serve"), "{ran:?}");
    let completions = outlive.run(&["completions", "bash"]);
    assert_eq!(completions.code, 0);
    assert!(!ran.err.contains("supervise") && !completions.out.contains("supervise"));
}

#[test]
fn command_with_an_address_among_its_words_is_started() {
    let outlive = Outlive::new();
    let server = format!("'{}' --stdio http://127.0.0.1:9/mcp", program());
    outlive.says(&["call", &server, "wrapped"], "3\n");
}

#[test]
fn wrong_scheme_and_wrong_path_are_told_apart_from_no_server() {
    let (outlive, stage) = (Outlive::new(), Stage::start(&[]));
    let ran = outlive.run(&["call", &stage.url.replace("http:", "https:"), "wrapped"]);
    let remedy = format!("it speaks no TLS there: {}", stage.url);
    assert!(ran.code == 3 && ran.err.contains(&remedy), "{ran:?}");
    let ran = outlive.run(&["call", &stage.url.replace("/mcp", "/other"), "wrapped"]);
    assert!(ran.code == 3 && ran.err.contains("no MCP at this path"), "{ran:?}");
}

#[test]
fn login_where_none_is_wanted_or_only_a_token_is_says_so() {
    let outlive = Outlive::new();
    let open = Stage::start(&[]);
    let ran = outlive.run(&["login", &open.url, "--no-browser"]);
    assert!(ran.code == 1 && ran.err.contains("wants no login"), "{ran:?}");
    let guarded = Stage::start(&["--token", "adas-token-0123456789"]);
    let ran = outlive.run(&["login", &guarded.url, "--no-browser"]);
    assert!(ran.code == 3 && ran.err.contains("names no place to log in"), "{ran:?}");
    assert!(ran.err.contains("--token-env"), "{ran:?}");
}
