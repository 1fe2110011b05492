//! `outlive init` and `outlive connect`: from a command to a connected host.

use std::{
    fs,
    path::Path,
    process::{Command, Output, Stdio},
};

use serde_json::{Value, json};

use crate::store::{Folder, err, out};

/// Runs the program in a folder, without a terminal.
fn outlive(folder: &Path, args: &[&str]) -> Output {
    let mut program = Command::new(env!("CARGO_BIN_EXE_outlive"));
    program.args(args).current_dir(folder).env("HOME", folder).stdin(Stdio::null());
    program.env("OUTLIVE_DATA_DIR", folder.join("data")).output().unwrap()
}

#[test]
fn init_with_command_writes_valid_file() {
    let folder = Folder::new();
    let made = outlive(&folder.0, &["init", "--json", "--", "echo", "--to={to}", "{text}"]);
    assert_eq!(made.status.code(), Some(0), "{}", err(&made));
    let report: Value = serde_json::from_str(&out(&made)).unwrap();
    assert_eq!(
        report,
        json!({"file": "outlive.toml", "tool": "echo", "arguments": ["to", "text"]})
    );
    let checked = outlive(&folder.0, &["doctor", "--listen", "127.0.0.1:0"]);
    assert_eq!(checked.status.code(), Some(0), "{}", out(&checked));
    let server = format!("'{}' serve --stdio", env!("CARGO_BIN_EXE_outlive"));
    let called = outlive(&folder.0, &["call", &server, "echo", "to=a", "text=b"]);
    assert_eq!(out(&called), "--to=a b\n", "{}", err(&called));
}

#[test]
fn init_keeps_existing_file_without_force() {
    let folder = Folder::new();
    let file = folder.0.join("outlive.toml");
    fs::write(&file, "mine").unwrap();
    let refused = outlive(&folder.0, &["init", "--", "date"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(err(&refused).contains("--force"), "{}", err(&refused));
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    assert_eq!(outlive(&folder.0, &["init", "--force", "--", "date"]).status.code(), Some(0));
    assert!(fs::read_to_string(&file).unwrap().contains("[tools.date]"));
}

#[test]
fn init_with_invalid_name_writes_no_file() {
    let folder = Folder::new();
    let refused = outlive(&folder.0, &["init", "--name", "my tool", "--", "date"]);
    assert_eq!(refused.status.code(), Some(2), "{}", err(&refused));
    assert!(!folder.0.join("outlive.toml").exists());
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 0);
}

#[test]
fn init_without_command_or_terminal_has_remedy() {
    let folder = Folder::new();
    let refused = outlive(&folder.0, &["init"]);
    assert_eq!(refused.status.code(), Some(5));
    assert!(err(&refused).contains("outlive init -- PROGRAM"), "{}", err(&refused));
}

#[test]
fn connect_write_adds_entry_and_keeps_rest_of_file() {
    let folder = Folder::new();
    fs::write(
        folder.0.join("outlive.toml"),
        "[server]\nname = \"shop\"\n[tools.date]\ndescription = \"Date.\"\ncommand = [\"date\"]\n",
    )
    .unwrap();
    fs::write(
        folder.0.join(".mcp.json"),
        r#"{"mcpServers": {"other": {"command": "x"}}, "more": 1}"#,
    )
    .unwrap();
    let written = outlive(&folder.0, &["connect", "claude-code", "--write"]);
    assert_eq!(written.status.code(), Some(0), "{}", err(&written));
    let config: Value =
        serde_json::from_str(&fs::read_to_string(folder.0.join(".mcp.json")).unwrap()).unwrap();
    let entry = json!({"type": "http", "url": "http://127.0.0.1:8000/mcp"});
    assert_eq!(
        config,
        json!({"mcpServers": {"other": {"command": "x"}, "shop": entry}, "more": 1})
    );
}

#[test]
fn connect_with_invalid_file_reports_every_mistake() {
    let folder = Folder::new();
    let tool = "[tools.date]\ndescription = \"Date.\"\ncommand = [\"date\"]\n";
    let file = format!("[server]\nlisten = \"x\"\n{tool}comand = 1\n");
    fs::write(folder.0.join("outlive.toml"), file).unwrap();
    let refused = outlive(&folder.0, &["connect", "claude-code"]);
    assert_eq!(refused.status.code(), Some(2), "{}", err(&refused));
    let said = err(&refused);
    // Each mistake has its own line at the margin, with its remedy below.
    for start in ["error: outlive.toml:2: ", "error: outlive.toml:6: "] {
        assert!(said.lines().any(|line| line.starts_with(start)), "{start}: {said}");
    }
    assert!(said.ends_with("\n  try: write `command`\n"), "{said}");
}

#[test]
fn connect_prints_host_command_on_stdout() {
    let folder = Folder::new();
    let printed = outlive(
        &folder.0,
        &["connect", "codex", "--url", "https://a.example/mcp", "--token-env", "TOKEN"],
    );
    let wanted = "codex mcp add outlive --url https://a.example/mcp --bearer-token-env-var TOKEN\n\
                  [mcp_servers.\"outlive\"]\nurl = \"https://a.example/mcp\"\nbearer_token_env_var = \"TOKEN\"\n";
    assert_eq!(out(&printed), wanted);
}

#[test]
fn connect_to_host_without_http_requires_stdio() {
    let folder = Folder::new();
    let refused = outlive(&folder.0, &["connect", "claude-desktop"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(err(&refused).contains("--stdio"), "{}", err(&refused));
    let printed = outlive(&folder.0, &["connect", "claude-desktop", "--stdio", "--json"]);
    let report: Value = serde_json::from_str(&out(&printed)).unwrap();
    let entry = &report["entry"]["mcpServers"]["outlive"];
    assert_eq!(entry["args"], json!(["serve", "--stdio"]));
    assert_eq!(entry["command"], env!("CARGO_BIN_EXE_outlive"));
}

#[test]
fn man_writes_page_for_every_command() {
    let folder = Folder::new();
    let pages = folder.0.join("man/man1");
    let written = outlive(&folder.0, &["man", pages.to_str().unwrap()]);
    assert_eq!(written.status.code(), Some(0), "{}", err(&written));
    for command in outlive_cli::commands() {
        let page = pages.join(format!("outlive-{}.1", command.replace(' ', "-")));
        let text = fs::read_to_string(&page).unwrap_or_else(|error| panic!("{command}: {error}"));
        assert!(text.contains(".SH SYNOPSIS"), "{command}:\n{text}");
    }
}
