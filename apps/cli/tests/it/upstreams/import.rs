//! `outlive upstreams import`: the file of every host becomes a file that `outlive` accepts.

use std::{fs, path::Path, process::Output};

use serde_json::{Value, json};
use toml::Table;

use crate::store::{Folder, err, out};

/// A text that is in files of hosts and must not be in any output.
const SECRET: &str = "s3cr3t-0a1b2c3d4e5f";

fn import(folder: &Folder, file: &str, args: &[&str]) -> Output {
    let mut program = std::process::Command::new(env!("CARGO_BIN_EXE_outlive"));
    program.args(["upstreams", "import", file]).args(args).current_dir(&folder.0);
    program.env("HOME", &folder.0).env("OUTLIVE_DATA_DIR", folder.0.join("data"));
    program.env("SET_HERE", "set").env_remove("NOT_SET_HERE").output().unwrap()
}

/// Imports a file. Returns its upstreams, and asserts that no output has a secret and that the
/// program accepts the result.
#[track_caller]
fn imported(name: &str, text: &str) -> (Folder, Table, String) {
    let folder = Folder::new();
    let file = folder.0.join(name);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, text.replace("SECRET", SECRET)).unwrap();
    let output = import(&folder, name, &[]);
    assert!(output.status.success(), "{}", err(&output));
    for said in [out(&output), err(&output)] {
        assert!(!said.contains(SECRET), "{said}");
    }
    let printed = out(&output);
    let mut file: Table = printed.parse().unwrap_or_else(|error| panic!("{error}: {printed}"));
    fs::write(folder.0.join("outlive.toml"), &printed).unwrap();
    if !printed.trim().is_empty() {
        accepted(&folder);
    }
    let upstreams = match file.remove("upstreams") {
        Some(toml::Value::Table(upstreams)) => upstreams,
        _ => Table::new(),
    };
    (folder, upstreams, err(&output))
}

/// Asserts that the file has no mistakes.
#[track_caller]
fn accepted(folder: &Folder) {
    let mut program = std::process::Command::new(env!("CARGO_BIN_EXE_outlive"));
    program.args(["connect", "cursor", "--json"]).current_dir(&folder.0);
    let checked = program.env("HOME", &folder.0).output().unwrap();
    assert!(checked.status.success(), "{}", err(&checked));
}

/// Returns an upstream as JSON.
fn json_of(upstreams: &Table, name: &str) -> Value {
    serde_json::to_value(&upstreams[name]).unwrap()
}

/// Returns the secret behind a reference, and asserts that only the user can read it.
#[track_caller]
fn secret(reference: &Value) -> String {
    let path = reference.as_str().unwrap();
    let path = Path::new(path.strip_prefix("file:").unwrap_or(path));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(path), mode(path.parent().unwrap())), (0o600, 0o700));
    }
    fs::read_to_string(path).unwrap()
}

#[test]
fn claude_file_becomes_upstreams_without_secrets() {
    let (folder, upstreams, said) = imported(
        ".claude.json",
        r#"{
          "numStartups": 3,
          "mcpServers": {
            "github": {"type": "stdio", "command": "docker", "args": ["run", "-i", "-e", "GITHUB_TOKEN", "ghcr.io/github/github-mcp-server"],
                       "env": {"GITHUB_TOKEN": "SECRET", "LOG_LEVEL": "debug", "HOST_VALUE": "${SET_HERE}"}},
            "Linear (EU)": {"type": "http", "url": "https://mcp.linear.app/mcp", "headers": {"Authorization": "Bearer SECRET", "X-Region": "eu"}},
            "db": {"command": "npx", "args": ["-y", "server-postgres", "postgresql://ada:SECRET@db/shop"]},
            "keyed": {"command": "npx", "args": ["server", "--api-key", "SECRET", "--verbose"]},
            "old": {"command": "x", "disabled": true},
            "outlive": {"command": "/usr/local/bin/outlive", "args": ["serve", "--stdio"]}
          },
          "projects": {"/elsewhere": {"mcpServers": {"other": {"command": "x"}}}}
        }"#,
    );
    let github = json_of(&upstreams, "github");
    assert_eq!(github["command"][5], "ghcr.io/github/github-mcp-server");
    assert_eq!(secret(&github["env"]["GITHUB_TOKEN"]), SECRET);
    assert_eq!(github["env"]["LOG_LEVEL"], "debug");
    assert_eq!(github["env"]["HOST_VALUE"], "env:SET_HERE");
    let linear = json_of(&upstreams, "linear-eu");
    assert_eq!(linear["url"], "https://mcp.linear.app/mcp");
    assert_eq!(secret(&linear["token_file"]), SECRET);
    assert_eq!(linear["headers"], json!({"X-Region": "eu"}));
    let db = json_of(&upstreams, "db");
    assert_eq!(
        db["command"],
        json!(["/bin/sh", "-c", "exec npx -y server-postgres \"$SECRET_3\""])
    );
    assert_eq!(secret(&db["env"]["SECRET_3"]), format!("postgresql://ada:{SECRET}@db/shop"));
    let keyed = json_of(&upstreams, "keyed");
    assert_eq!(keyed["command"][2], "exec npx server --api-key \"$SECRET_3\" --verbose");
    assert_eq!(upstreams.len(), 4);
    for says in [
        "left out: old: it is disabled",
        "left out: outlive: it is Outlive itself",
        "/elsewhere",
        "4 upstreams",
    ] {
        assert!(said.contains(says), "{says}: {said}");
    }
    drop(folder);
}

#[test]
fn vscode_file_with_comments_and_inputs_becomes_upstreams() {
    let (folder, upstreams, said) = imported(
        ".vscode/mcp.json",
        r#"{
          // typed by the user
          "inputs": [{"type": "promptString", "id": "key", "password": true}],
          "servers": {
            "fetch": {"type": "stdio", "command": "uvx", "args": ["mcp-server-fetch"], "env": {"API_KEY": "${input:key}"}, "cwd": "${workspaceFolder}/tools"},
            "remote": {"type": "http", "url": "https://example.com/mcp", "headers": {"X-Api-Key": "${env:SET_HERE}"}},
          },
        }"#,
    );
    let fetch = json_of(&upstreams, "fetch");
    let project = fs::canonicalize(&folder.0).unwrap();
    let written = fetch["working_dir"].as_str().unwrap().to_owned();
    assert!(written.ends_with("/tools") && Path::new(&written).starts_with(project), "{written}");
    assert!(fetch["env"]["API_KEY"].as_str().unwrap().starts_with("file:/"));
    assert!(said.contains("the host asks for the value of `API_KEY`"), "{said}");
    let remote = json_of(&upstreams, "remote");
    assert_eq!(remote["headers"], json!({"X-Api-Key": "env:SET_HERE"}));
}

#[test]
fn files_of_other_hosts_become_upstreams() {
    let (_folder, upstreams, _) = imported(
        ".cursor/mcp.json",
        r#"{"mcpServers": {"a": {"url": "https://example.com/sse", "headers": {"Authorization": "Bearer ${env:SET_HERE}"}}, "b": {"command": "npx -y server --fast"}}}"#,
    );
    assert_eq!(
        json_of(&upstreams, "a"),
        json!({"url": "https://example.com/sse", "token_env": "SET_HERE"})
    );
    assert_eq!(json_of(&upstreams, "b")["command"], json!(["npx", "-y", "server", "--fast"]));

    let (_folder, upstreams, _) = imported(
        "mcp_config.json",
        r#"{"mcpServers": {"w": {"serverUrl": "https://example.com/mcp", "disabledTools": ["x"]}}}"#,
    );
    assert_eq!(json_of(&upstreams, "w"), json!({"url": "https://example.com/mcp", "hide": ["x"]}));

    let (_folder, upstreams, said) = imported(
        "settings.json",
        r#"{"theme": "x", /* zed */ "context_servers": {
             "new": {"source": "custom", "command": "npx", "args": ["-y", "server"], "env": {"A": "b"}},
             "old": {"command": {"path": "node", "args": ["server.js"], "env": {"A": "b"}}, "settings": {}},
             "extension": {"source": "extension", "settings": {}}}}"#,
    );
    assert_eq!(
        json_of(&upstreams, "new"),
        json!({"command": ["npx", "-y", "server"], "env": {"A": "b"}})
    );
    assert_eq!(
        json_of(&upstreams, "old"),
        json!({"command": ["node", "server.js"], "env": {"A": "b"}})
    );
    assert!(said.contains("left out: extension"), "{said}");

    let (_folder, upstreams, _) = imported(
        ".gemini/settings.json",
        r#"{"mcpServers": {"g": {"httpUrl": "https://example.com/mcp", "includeTools": ["a", "b"], "headers": {"X-Key": "$SET_HERE"}}}}"#,
    );
    assert_eq!(
        json_of(&upstreams, "g"),
        json!({"url": "https://example.com/mcp", "headers": {"X-Key": "env:SET_HERE"}, "only": ["a", "b"]})
    );

    let (_folder, upstreams, _) = imported(
        "config.toml",
        "model = \"x\"\n[mcp_servers.c]\ncommand = \"npx\"\nargs = [\"server\"]\n[mcp_servers.d]\nurl = \"https://example.com/mcp\"\nbearer_token_env_var = \"SET_HERE\"\n",
    );
    assert_eq!(json_of(&upstreams, "c"), json!({"command": ["npx", "server"]}));
    assert_eq!(
        json_of(&upstreams, "d"),
        json!({"url": "https://example.com/mcp", "token_env": "SET_HERE"})
    );
}

#[test]
fn variable_that_is_not_set_is_reported_and_left_out() {
    let (_folder, upstreams, said) = imported(
        "mcp.json",
        r#"{"mcpServers": {"a": {"command": "x", "env": {"ONE": "pre-${NOT_SET_HERE}", "TWO": "pre-${SET_HERE}", "THREE": "${NOT_SET_HERE:-plain}"}}}}"#,
    );
    let env = &json_of(&upstreams, "a")["env"];
    assert_eq!((env.get("ONE"), &env["THREE"]), (None, &json!("plain")));
    assert_eq!(secret(&env["TWO"]), "pre-set");
    assert!(said.contains("${NOT_SET_HERE}, which is not set here"), "{said}");
}

#[test]
fn secret_in_url_is_stored_and_second_import_adds_nothing() {
    let (folder, upstreams, _) = imported(
        "mcp.json",
        r#"{"mcpServers": {"a": {"url": "https://example.com/mcp?apiKey=SECRET"}}}"#,
    );
    let url = &json_of(&upstreams, "a")["url"];
    assert_eq!(secret(url), format!("https://example.com/mcp?apiKey={SECRET}"));
    let again = import(&folder, "mcp.json", &[]);
    assert_eq!((out(&again).as_str(), again.status.code()), ("", Some(0)));
    assert!(err(&again).contains("the file has an upstream of this name"), "{}", err(&again));
    let report = import(&folder, "mcp.json", &["--json", "--file", "none.toml"]);
    let report: Value = serde_json::from_str(&out(&report)).unwrap();
    assert_eq!((&report["upstreams"], &report["skipped"]), (&json!(["a"]), &json!([])));
    // The secret is the same, so the second import uses its file.
    assert!(report["toml"].as_str().unwrap().contains(url.as_str().unwrap()));
}

#[test]
fn file_without_servers_or_with_mistake_is_rejected() {
    let folder = Folder::new();
    for (text, says) in [
        ("{}", "has no MCP servers"),
        ("{\n // x\n \"mcpServers\": oops}", "line 3"),
        ("[]", "has no MCP servers"),
    ] {
        fs::write(folder.0.join("mcp.json"), text).unwrap();
        let refused = import(&folder, "mcp.json", &[]);
        assert_eq!((refused.status.code(), out(&refused).as_str()), (Some(2), ""));
        assert!(err(&refused).contains(says), "{says}: {}", err(&refused));
    }
    let missing = import(&folder, "none.json", &[]);
    assert!(err(&missing).contains("~/.claude.json"), "{}", err(&missing));
}
