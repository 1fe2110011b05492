//! `outlive doctor`.

use std::{
    fs,
    io::{Read, Write},
    net::TcpListener,
    process::{Command, Output},
    time::Duration,
};

use outlive::server::{Server, http::HttpConfig};
use serde_json::{Value, json, value::to_raw_value};

use crate::{
    auth::world::{Authority, Ways},
    store::{Folder, Place, err, out, outlive},
};

/// Returns a listener on a free port, and its address.
fn free_port() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    (listener, address)
}

fn doctor(folder: &Folder, args: &[&str]) -> Output {
    outlive(&folder.0, &[&["doctor", "--json"], args].concat())
}

/// Returns the findings of a check: level, and message with remedy.
fn findings(output: &Output, check: &str) -> Vec<(String, String)> {
    let report: Value =
        serde_json::from_str(&out(output)).unwrap_or_else(|_| panic!("{}", err(output)));
    let all = report["findings"].as_array().unwrap().iter();
    let text = |finding: &Value, key: &str| finding[key].as_str().unwrap_or_default().to_owned();
    all.filter(|finding| finding["check"] == check)
        .map(|finding| {
            (text(finding, "level"), text(finding, "what") + "; " + &text(finding, "remedy"))
        })
        .collect()
}

#[track_caller]
fn finds(output: &Output, check: &str, level: &str, words: &str) {
    let found = findings(output, check);
    let fits = |(is, what): &(String, String)| is == level && what.contains(words);
    assert!(found.iter().any(fits), "no {level} of {check} contains `{words}`: {found:?}");
}

#[tokio::test]
async fn doctor_in_healthy_environment_reports_ok() {
    let folder = Folder::new();
    let (listener, address) = free_port();
    drop(listener);
    let healthy = doctor(&folder, &["--listen", &address]);
    assert_eq!(healthy.status.code(), Some(0), "{}", out(&healthy));
    finds(&healthy, "port", "ok", "is free");
    finds(&healthy, "store", "ok", "no tables yet");
    assert!(!folder.0.join("tasks.db").exists(), "doctor must not create a store");
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 0, "doctor must leave no files");
    outlive(&folder.0, &["store", "migrate"]);
    let data = folder.0.display().to_string();
    let healthy = doctor(&folder, &["--listen", &address, "--data-dir", &data]);
    finds(&healthy, "store", "ok", "written and read");
    let text = outlive(&folder.0, &["doctor", "--listen", &address]);
    assert_eq!(text.status.code(), Some(0));
    assert!(out(&text).lines().any(|line| line.starts_with("ok") && line.contains("clock")));
    assert!(!out(&text).contains('\u{1b}'), "no colors without a terminal");
}

#[tokio::test]
async fn doctor_checks_database() {
    let place = Place::database().await;
    let (listener, address) = free_port();
    drop(listener);
    let args = ["--store", place.url.as_str(), "--listen", &address];
    let before = doctor(&place.folder, &args);
    finds(&before, "store", "ok", "no tables yet");
    outlive(&place.folder.0, &["store", "migrate", &place.url]);
    let after = doctor(&place.folder, &args);
    assert_eq!(after.status.code(), Some(0), "{}", out(&after));
    finds(&after, "store", "ok", "written and read");
    finds(&after, "database", "ok", "responds within");
    finds(&after, "clock", "ok", "agree");
    let absent = doctor(&place.folder, &["--store", "postgres://ada:hunter2@127.0.0.1:1/d"]);
    assert_eq!(absent.status.code(), Some(1));
    finds(&absent, "store", "failure", "check");
    assert!(!out(&absent).contains("hunter2"));
}

#[tokio::test]
async fn doctor_shows_learned_call_timeouts() {
    let folder = Folder::new();
    outlive(&folder.0, &["store", "migrate"]);
    let data = folder.0.display().to_string();
    let known = doctor(&folder, &["--data-dir", &data]);
    assert!(findings(&known, "hosts").is_empty(), "{}", out(&known));
    let url = format!("sqlite:{}", folder.0.join("tasks.db").display());
    let client = |name: &str, expires_at: u64| {
        json!({"name": name, "version": "2", "transport": "http", "last_ms": 60_010,
            "limit_ms": 60_000, "spans_rounds": true, "expires_at": expires_at})
    };
    let learned = json!({"principal": "name:ada",
        "clients": [client("agent\u{1b}[2J", 4_102_444_800_000), client("gone", 1)]});
    let week = Duration::from_secs(604_800);
    let value = to_raw_value(&learned).unwrap();
    let store = outlive::store::open(&url).await.unwrap();
    store.put("learned/1", value, week, None).await.unwrap();
    drop(store);
    let shown = doctor(&folder, &["--data-dir", &data]);
    let says = "of name:ada (http) ends calls after 60 s, all rounds together (learned, used until";
    finds(&shown, "hosts", "ok", says);
    assert_eq!(findings(&shown, "hosts").len(), 1, "an expired limit is not shown");
    let text = outlive(&folder.0, &["doctor", "--data-dir", &data]);
    assert!(!out(&text).contains('\u{1b}'), "a client's name cannot control the terminal");
}

#[test]
fn unreachable_database_is_reported_with_reason() {
    let folder = Folder::new();
    for (url, says) in [
        ("postgres://ada:secret@127.0.0.1:1/d", "onnection refused"),
        ("postgres://ada:secret@no-such-host.invalid/d", "lookup"),
    ] {
        finds(&doctor(&folder, &["--store", url]), "store", "failure", says);
        let data = folder.0.join("data").display().to_string();
        let served = outlive(&folder.0, &["serve", "--store", url, "--data-dir", &data]);
        assert!(err(&served).contains(says), "{}", err(&served));
        assert_eq!(served.status.code(), Some(3));
    }
}

#[tokio::test]
async fn doctor_port_in_use_reports_owner() {
    let folder = Folder::new();
    let server = Server::builder("greeter", "3.1").build().unwrap();
    let serving = server.serve_http("127.0.0.1:0", HttpConfig::new()).await.unwrap();
    let url = serving.url();
    let address = url.trim_start_matches("http://").split('/').next().unwrap().to_owned();
    let args = ["--listen".to_owned(), address];
    let (data, asked) = (folder.0.clone(), args.clone());
    let ours = tokio::task::spawn_blocking(move || {
        outlive(&data, &["doctor", "--json", &asked[0], &asked[1]])
    });
    let ours = ours.await.unwrap();
    finds(&ours, "port", "warning", "the MCP server greeter 3.1");
    assert_eq!(ours.status.code(), Some(0), "it may be the server that the user checks");

    let (listener, address) = free_port();
    let stranger = std::thread::spawn(move || {
        // Responds to every request with something other than MCP.
        for connection in listener.incoming() {
            let Ok(mut connection) = connection else { return };
            let read = connection.read(&mut [0; 1024]).unwrap_or_default();
            if read == 0 {
                return;
            }
            let _ = connection.write_all(b"220 mail.example.com ready\r\n");
        }
    });
    let taken = doctor(&folder, &["--listen", &address]);
    finds(&taken, "port", "failure", "a program that is not an MCP server");
    assert_eq!(taken.status.code(), Some(1));
    // A connection without data ends the thread.
    drop(std::net::TcpStream::connect(&address));
    stranger.join().unwrap();
    let nowhere = doctor(&folder, &["--listen", "192.0.2.1:8000"]);
    finds(&nowhere, "port", "failure", "not an address of this machine");
}

#[test]
fn doctor_failures_have_remedies() {
    let folder = Folder::new();
    let file = |name: &str, text: &str| {
        let path = folder.0.join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let toml = file("outlive.toml", "[server]\nname = \n");
    let plain = file("plain", "");
    let wrong = doctor(&folder, &[&toml]);
    assert_eq!(wrong.status.code(), Some(1));
    finds(&wrong, "file", "failure", "outlive.toml:2:");
    let toml = file(
        "outlive.toml",
        "[server]\nlisten = \"192.0.2.1:8000\"\n[tools.a]\ndescription = \"d\"\ncommand = [\"no-such-program\"]\n\
         [tools.b]\ndescription = \"d\"\ncommand = [\"true\"]\nworking_dir = \"nowhere\"\n",
    );
    let wrong = doctor(&folder, &[&toml]);
    finds(&wrong, "file", "ok", "has 2 tools");
    finds(&wrong, "file", "failure", "`a` runs `no-such-program`");
    finds(&wrong, "file", "failure", "the working folder of tool `b` does not exist");
    finds(&wrong, "port", "failure", "not an address of this machine");
    let no_folder = doctor(&folder, &["--data-dir", &plain]);
    finds(&no_folder, "data", "failure", "is not a folder");
    let long = folder.0.join("x".repeat(120));
    finds(&doctor(&folder, &["--data-dir", &long.display().to_string()]), "socket", "ok", "can");
    let mut without_links = Command::new(env!("CARGO_BIN_EXE_outlive"));
    without_links.args(["doctor", "--json", "--data-dir"]).arg(&long).env("TMPDIR", &plain);
    finds(&without_links.output().unwrap(), "socket", "failure", "set TMPDIR to a folder");
    let future = doctor(&folder, &["--data-dir", &folder.0.join("new/er").display().to_string()]);
    finds(&future, "data", "ok", "will be created");
    let diary = format!("sqlite:{}", file("diary", &"dear diary, ".repeat(1_000)));
    finds(&doctor(&folder, &["--store", &diary]), "store", "failure", "use another file");
    finds(
        &doctor(&folder, &["--store", "memory:"]),
        "store",
        "warning",
        "tasks are lost when the server stops",
    );
}

#[cfg(unix)]
#[test]
fn doctor_reports_files_readable_by_other_users() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    let tokens = folder.0.join("tokens");
    fs::write(&tokens, "ada 0123456789abcdef\n").unwrap();
    let key = folder.0.join("seal.key");
    let mode = |path: &std::path::Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    let look = || {
        let (data, tokens) = (folder.0.display().to_string(), tokens.display().to_string());
        doctor(&folder, &["--data-dir", &data, "--token-file", &tokens])
    };
    outlive::server::SealKeys::from_file(&key).unwrap();
    mode(&folder.0, 0o755);
    mode(&tokens, 0o644);
    mode(&key, 0o644);
    let open = look();
    finds(&open, "data", "warning", "chmod 700");
    finds(&open, "tokens", "failure", "chmod 600");
    finds(&open, "keys", "failure", "chmod 600");
    assert_eq!(open.status.code(), Some(1));
    assert!(!out(&open).contains("0123456789abcdef"));
    mode(&folder.0, 0o700);
    mode(&tokens, 0o600);
    mode(&key, 0o600);
    let shut = look();
    finds(&shut, "data", "ok", "only its owner");
    finds(&shut, "tokens", "ok", "only its owner");
    finds(&shut, "keys", "ok", "has keys");
    fs::write(&tokens, "ada short\n").unwrap();
    finds(&look(), "tokens", "failure", "16 characters");
}

#[test]
fn doctor_checks_token_issuers() {
    let (folder, issuer) = (Folder::new(), Authority::start(Ways::default()));
    let url = issuer.url.as_str();
    let file = folder.0.join("auth.toml");
    let check = |auth: &str| {
        let tool = "[tools.t]\ndescription = \"d\"\ncommand = [\"sh\"]\n";
        fs::write(&file, format!("{tool}[auth]\n{auth}")).unwrap();
        doctor(&folder, &["--listen", "127.0.0.1:0", file.to_str().unwrap()])
    };
    let mcp = "resource = \"https://mcp.test/mcp\"\n";
    let all_well = check(&format!("{mcp}issuer = \"{url}\"\n"));
    finds(&all_well, "auth", "ok", "https://mcp.test/.well-known/oauth-protected-resource/mcp");
    finds(&all_well, "auth", "ok", &format!("{url} publishes 1 key"));
    assert_eq!(all_well.status.code(), Some(0), "{}", out(&all_well));
    // The same address under another name: the metadata there names another issuer.
    let other = url.replace("127.0.0.1", "localhost");
    let found = check(&format!("{mcp}issuer = \"{other}\"\n"));
    finds(&found, "auth", "failure", "describes another issuer; copy `issuer` exactly");
    assert_eq!(found.status.code(), Some(1));
    let found = check(&format!("{mcp}issuer = \"{url}\"\njwks_url = \"{url}/nowhere\"\n"));
    finds(&found, "auth", "failure", &format!("returned HTTP 404; open {url}/nowhere"));
    let gone = free_port().1;
    let found = check(&format!("{mcp}issuer = \"http://{gone}\"\n"));
    finds(&found, "auth", "failure", &format!("cannot verify tokens of http://{gone}"));
    let found = check(&format!("resource = \"https://mcp.test/tools\"\nissuer = \"{url}\"\n"));
    finds(&found, "auth", "warning", "serves /mcp");
    let found = check(&format!("resource = \"mcp.test\"\nissuer = \"{url}\"\n"));
    finds(&found, "auth", "failure", "[auth]: ");
    let asking = format!(
        "introspection_url = \"{url}/introspect\"\nintrospection_client_id = \"us\"\nintrospection_secret_env = \"PATH\"\n"
    );
    let found = check(&format!("{mcp}issuer = \"{url}\"\n{asking}"));
    finds(&found, "auth", "ok", "supports token introspection");
    let found =
        check(&format!("{mcp}issuer = \"{url}\"\n{}", asking.replace("/introspect", "/elsewhere")));
    finds(&found, "auth", "failure", "knows the client `us`, and that PATH has its secret");
}
