//! `outlive inbox` and `outlive console`: people decide about calls of a real server.

use std::{
    fs,
    io::{BufRead, BufReader},
    os::unix::fs::PermissionsExt,
    process::{Child, Command, Output, Stdio},
};

use outlive::client::{Client, request::result_text, tasks::TaskEvent};
use serde_json::{Value, json};

use super::{Place, builder, until};
use crate::{
    auth::world::get,
    store::{err, out},
};

const TOKENS: &str = "ann ann-mcp-token-0123456789\nada ada-mcp-token-0123456789\n\
                      ann ann-decides-0123456789 decide\nada ada-decides-0123456789 decide\n\
                      ben ben-decides-0123456789 decide\ncid cid-decides-0123456789 decide\n";

/// A tool that two of three people approve for `prod`. Each run adds a line to a file.
const DEPLOY: &str = r#"
[server]
token_file = "callers.txt"

[console]
operators = ["cid"]

[tools.deploy]
description = "Deploys a version."
command = ["sh", "-c", "echo $0 $1 >> runs; echo deployed $0", "{version}", "{env}"]
arguments = { version = { type = "string" }, env = { type = "string", enum = ["test", "prod"] } }
approve = { by = ["ada", "ben", "ann"], count = 2, when = { env = ["prod"] } }
task = "always"
tags = { version = "{version}" }
"#;

/// Starts a server with a token file.
fn served(file: &str) -> Place {
    let mut place = Place::unserved(file);
    with_tokens(&place, TOKENS);
    place.start();
    place
}

fn with_tokens(place: &Place, tokens: &str) {
    let file = place.folder.join("callers.txt");
    fs::write(&file, tokens).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
}

/// Runs `outlive inbox` with the token of a person, and without stored logins.
fn inbox(place: &Place, token: &str, args: &[&str]) -> Output {
    let mut program = Command::new(env!("CARGO_BIN_EXE_outlive"));
    program.current_dir(&place.folder).arg("inbox").args(args);
    program.args(["--server", place.url(), "--token-env", "TOKEN"]).env("TOKEN", token);
    program.env("OUTLIVE_DATA_DIR", place.folder.join("home")).output().unwrap()
}

/// Runs `outlive inbox` on the machine of a server without tokens.
fn local_inbox(place: &Place, args: &[&str]) -> Output {
    let mut program = Command::new(env!("CARGO_BIN_EXE_outlive"));
    program.current_dir(&place.folder).arg("inbox").args(args).args(["--server", place.url()]);
    program.arg("--data-dir").arg(place.folder.join("data"));
    program.env("OUTLIVE_DATA_DIR", place.folder.join("home")).output().unwrap()
}

/// Returns the open requests of a person.
#[track_caller]
fn open(place: &Place, token: &str) -> Vec<Value> {
    let listed = inbox(place, token, &["list", "--json"]);
    assert!(listed.status.success(), "{}{}", err(&listed), place.log());
    out(&listed).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

async fn ann(place: &Place) -> Client {
    builder().token("ann-mcp-token-0123456789".to_owned()).connect(place.url()).await.unwrap()
}

#[tokio::test]
async fn call_runs_after_two_people_other_than_its_caller_approve() {
    let place = served(DEPLOY);
    let client = ann(&place).await;
    let call = json!({"version": "1.4.2", "env": "prod"});
    let mut task = client.start_tool("deploy", call).await.unwrap();
    let requests = open(&place, "ada-decides-0123456789");
    assert_eq!(requests.len(), 1);
    let id = requests[0]["task"].as_str().unwrap();

    let shown = out(&inbox(&place, "ben-decides-0123456789", &["show", &id[..12]]));
    for line in ["tool      deploy", "argument  version = \"1.4.2\"", "kind      approval, 0 of 2"]
    {
        assert!(shown.lines().any(|it| it == line), "{line}: {shown}");
    }
    assert!(shown.contains("runs      sh -c ") && shown.contains(" 1.4.2 prod"), "{shown}");

    let own = inbox(&place, "ann-decides-0123456789", &["approve", id]);
    assert_eq!(own.status.code(), Some(1), "{}", err(&own));
    assert!(err(&own).contains("the vote of the caller does not count"), "{}", err(&own));
    let token = inbox(&place, "ada-mcp-token-0123456789", &["approve", id]);
    assert_eq!(token.status.code(), Some(1), "an MCP token decides nothing: {}", err(&token));
    let outsider = inbox(&place, "cid-decides-0123456789", &["approve", id]);
    assert_eq!(outsider.status.code(), Some(1), "operators do not approve: {}", err(&outsider));

    let wrong = inbox(&place, "ada-decides-0123456789", &["approve", id, "--digest", "x"]);
    assert_eq!(wrong.status.code(), Some(1), "{}", err(&wrong));
    let first = inbox(&place, "ada-decides-0123456789", &["approve", &id[..12]]);
    assert_eq!(err(&first), "vote counted: 1 of 2\n");
    assert_eq!(place.read("runs"), "");
    let digest = shown.split_whitespace().last().unwrap();
    let second = inbox(
        &place,
        "ben-decides-0123456789",
        &["approve", id, "--digest", &digest[..8], "--json"],
    );
    assert_eq!(out(&second), "{\"state\":\"settled\"}\n", "{}", err(&second));
    let result = task.wait().await.unwrap();
    assert_eq!(result_text(&result), "deployed 1.4.2");
    assert_eq!(place.read("runs"), "1.4.2 prod\n");
    assert!(open(&place, "ada-decides-0123456789").is_empty());

    let mut free =
        client.start_tool("deploy", json!({"version": "2", "env": "test"})).await.unwrap();
    assert_eq!(result_text(&free.wait().await.unwrap()), "deployed 2");
}

/// An approved call waits for a slot. The server is killed, and starts again with another command.
#[tokio::test]
async fn approved_call_does_not_start_a_command_that_was_changed() {
    let file =
        DEPLOY.replace("echo deployed", "while [ ! -e go ]; do sleep 0.02; done; echo deployed");
    let file = file.replace("task = ", "max_concurrent = 1\ntask = ");
    let mut place = served(&file);
    let client = ann(&place).await;
    let mut running =
        client.start_tool("deploy", json!({"version": "1", "env": "test"})).await.unwrap();
    until("the first command runs", || (place.read("runs") == "1 test\n").then_some(())).await;
    let mut waiting =
        client.start_tool("deploy", json!({"version": "2", "env": "prod"})).await.unwrap();
    let id = open(&place, "ada-decides-0123456789")[0]["task"].as_str().unwrap().to_owned();
    for token in ["ada-decides-0123456789", "ben-decides-0123456789"] {
        let vote = inbox(&place, token, &["approve", &id]);
        assert!(vote.status.success(), "{}", err(&vote));
    }
    let mut events = waiting.events();
    loop {
        match events.next().await.unwrap().unwrap() {
            TaskEvent::Status(status)
                if status.message.as_deref().is_some_and(|it| it.contains("waiting for a")) =>
            {
                break;
            }
            TaskEvent::Done(result) => panic!("it did not wait: {}", result_text(&result)),
            _ => {}
        }
    }

    place.kill();
    place.write(&file.replace("echo $0 $1 >> runs", "echo changed $0 $1 >> runs"));
    place.start();
    fs::write(place.folder.join("go"), "").unwrap();
    assert_eq!(result_text(&running.wait().await.unwrap()), "deployed 1");
    let result = waiting.wait().await.unwrap();
    assert!(result_text(&result).contains("its command was not started"), "{result:?}");
    assert_eq!(place.read("runs"), "1 test\n");
}

#[tokio::test]
async fn denied_call_gets_the_reason_and_runs_nothing() {
    let place = served(DEPLOY);
    let client = ann(&place).await;
    let call = json!({"version": "1", "env": "prod"});
    let mut task = client.start_tool("deploy", call).await.unwrap();
    let id = open(&place, "ada-decides-0123456789")[0]["task"].as_str().unwrap().to_owned();
    let without = inbox(&place, "ada-decides-0123456789", &["deny", &id]);
    assert_eq!(without.status.code(), Some(2), "a denial needs a reason");
    let args = ["deny", &id, "--reason", "not before the freeze is over"];
    let denied = inbox(&place, "ada-decides-0123456789", &args);
    assert_eq!(err(&denied), "denied\n");
    let result = task.wait().await.unwrap();
    assert!(
        result_text(&result).starts_with("Denied: \"not before the freeze is over\""),
        "{result:?}"
    );
    assert_eq!((result.is_error, place.read("runs")), (Some(true), String::new()));
    let again = inbox(&place, "ben-decides-0123456789", &["approve", &id]);
    assert_eq!(again.status.code(), Some(1), "{}", err(&again));
}

#[tokio::test]
async fn unknown_request_and_wrong_token_are_reported() {
    let place = served(DEPLOY);
    let unknown = inbox(&place, "ada-decides-0123456789", &["show", "4f2a"]);
    assert_eq!(unknown.status.code(), Some(1));
    assert!(err(&unknown).contains("no input request that you may see matches `4f2a`"));
    let wrong = inbox(&place, "wrong-token-0123456789", &["list"]);
    assert_eq!(wrong.status.code(), Some(3), "{}", err(&wrong));
    assert!(err(&wrong).contains("with a deciding token"), "{}", err(&wrong));
    let empty = inbox(&place, "ada-decides-0123456789", &[]);
    assert_eq!(
        (out(&empty).as_str(), err(&empty).as_str()),
        ("", "no input request is open for you\n")
    );
}

#[tokio::test]
async fn answer_link_of_an_operator_votes_for_a_named_person() {
    let file = DEPLOY.replace("count = 2", "count = 2, links = true");
    let place = served(&file);
    let client = ann(&place).await;
    let call = json!({"version": "1", "env": "prod"});
    let _task = client.start_tool("deploy", call).await.unwrap();
    let id = open(&place, "ada-decides-0123456789")[0]["task"].as_str().unwrap().to_owned();
    let link = inbox(&place, "cid-decides-0123456789", &["link", &id, "--to", "ada"]);
    assert!(link.status.success(), "{}", err(&link));
    let link = out(&link);
    let (_, token) = link.trim().rsplit_once("/answer/").unwrap();
    let page = get(&place.url().replace("/mcp", &format!("/answer/{token}")));
    assert!(page.starts_with("HTTP/1.1 200 ") && page.contains("deploy"), "{page}");
    let other = inbox(&place, "ada-decides-0123456789", &["link", &id, "--to", "ben"]);
    assert_eq!(other.status.code(), Some(1), "only operators create links for others");
}

#[tokio::test]
async fn user_of_a_server_without_tokens_decides_with_its_keys() {
    let file = r#"
[tools.erase]
description = "Erases it."
command = ["sh", "-c", "echo erased | tee -a runs"]
destructive = true
task = "always"

[approvals]
destructive = ["local"]
"#;
    let place = Place::new(file);
    let client = place.client().await;
    let mut task = client.start_tool("erase", json!({})).await.unwrap();
    let listed = local_inbox(&place, &["--json"]);
    assert!(listed.status.success(), "{}{}", err(&listed), place.log());
    let request: Value = serde_json::from_str(&out(&listed)).unwrap();
    let approved = local_inbox(&place, &["approve", request["task"].as_str().unwrap()]);
    assert_eq!(err(&approved), "approved\n", "{}", place.log());
    assert_eq!(result_text(&task.wait().await.unwrap()), "erased");
    let stranger = Command::new(env!("CARGO_BIN_EXE_outlive"))
        .args(["inbox", "--server", place.url()])
        .env("OUTLIVE_DATA_DIR", place.folder.join("home"))
        .env("OUTLIVE_KEYRING", "off")
        .current_dir(place.folder.join("data"))
        .output()
        .unwrap();
    assert_eq!(stranger.status.code(), Some(3), "{}", err(&stranger));
}

#[test]
fn console_prints_a_link_that_signs_in_once() {
    let place = Place::new("[tools.t]\ndescription = \"d\"\ncommand = [\"true\"]\n");
    let mut program = Command::new(env!("CARGO_BIN_EXE_outlive"));
    program.current_dir(&place.folder).args(["console", "--json", "--server", place.url()]);
    let printed = program.arg("--data-dir").arg(place.folder.join("data")).output().unwrap();
    let printed: Value = serde_json::from_str(&out(&printed)).unwrap();
    assert_eq!(printed["signsIn"], true);
    let url = printed["url"].as_str().unwrap();
    let first = get(url);
    assert!(
        first.starts_with("HTTP/1.1 303 ") && first.contains("set-cookie: outlive="),
        "{first}"
    );
    assert!(get(url).starts_with("HTTP/1.1 404 "), "a link works once");
    assert!(!place.log().contains("/console/in/"), "{}", place.log());
    assert!(place.log().contains("run `outlive console`"), "{}", place.log());
}

#[test]
fn console_of_a_server_with_tokens_has_no_sign_in_link() {
    let place = served(DEPLOY);
    let mut program = Command::new(env!("CARGO_BIN_EXE_outlive"));
    program.current_dir(&place.folder).args(["console", "--server", place.url()]);
    let printed = program.env("OUTLIVE_DATA_DIR", place.folder.join("home")).output().unwrap();
    assert_eq!(out(&printed), format!("{}/console/\n", place.url().trim_end_matches("/mcp")));
}

/// A console of a store, stopped on drop.
struct StoreConsole(Child, String);

impl Drop for StoreConsole {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn console_of_a_store_needs_no_server() {
    let mut place = Place::new("[tools.t]\ndescription = \"d\"\ncommand = [\"true\"]\n");
    place.stop();
    let store = format!("sqlite:{}", place.folder.join("data/tasks.db").display());
    let mut program = Command::new(env!("CARGO_BIN_EXE_outlive"));
    program.args(["console", "--store", &store, "--json"]).stdout(Stdio::piped());
    let mut process = program.stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let console = StoreConsole(process, line);
    let printed: Value = serde_json::from_str(&console.1).unwrap();
    let reply = get(printed["url"].as_str().unwrap());
    assert!(reply.starts_with("HTTP/1.1 303 "), "{reply}");
    for (listen, code) in [("0.0.0.0:0", 2), ("nowhere", 2)] {
        let mut program = Command::new(env!("CARGO_BIN_EXE_outlive"));
        let refused = program.args(["console", "--store", &store, "--listen", listen]).output();
        assert_eq!(refused.unwrap().status.code(), Some(code), "{listen}");
    }
}

/// Runs `serve` to its end, and returns its exit code and its messages.
fn refused(file: &str, tokens: &str) -> (Option<i32>, String) {
    let place = Place::unserved(file);
    with_tokens(&place, tokens);
    let mut program = Command::new(env!("CARGO_BIN_EXE_outlive"));
    program.current_dir(&place.folder).args(["serve", "--listen", "127.0.0.1:0"]);
    let ended = program.arg("--data-dir").arg(place.folder.join("data")).output().unwrap();
    (ended.status.code(), err(&ended))
}

#[test]
fn server_with_unknown_approver_does_not_start() {
    let (code, said) = refused(&DEPLOY.replace("\"ann\"]", "\"dan\"]"), TOKENS);
    let what = "`approve` of the tool `deploy` names `dan`, but callers.txt has no token of `dan`";
    assert!(code == Some(2) && said.contains(what), "{said}");
    assert!(said.contains("add the line `dan TOKEN decide` to callers.txt"), "{said}");
    let scope = DEPLOY.replace("by = [\"ada\", \"ben\", \"ann\"], count = 2", "scope = \"ops\"");
    let (code, said) = refused(&scope, TOKENS);
    assert!(code == Some(2) && said.contains("no token in callers.txt has scopes"), "{said}");
    let (code, said) = refused(&DEPLOY.replace("token_file = \"callers.txt\"", ""), TOKENS);
    assert!(code == Some(2) && said.contains("knows only the person `local`"), "{said}");
}
