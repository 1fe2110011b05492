//! Hostile callers, files and folders against the operator of a server: on the terminal, in the
//! log, in the store.

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    path::Path,
    time::Duration,
};

use outlive::{
    client::{
        Client,
        input::{InputCallbacks, InputResponse},
    },
    store::{
        AuditEvent, Changes, JournalEntry, NewInputRequest, RecordedEntry, TaskId, TaskOutcome,
        Transition, open,
    },
    wire::{ErrorObject, InputRequest},
};
use serde_json::json;

use super::{Driver, Kind, Recorded, SERVING, STORE, harm};
use crate::store::{raw, start, task};

/// Formats a text as a TOML string without raw control characters.
pub(super) fn toml(text: &str) -> String {
    let escaped = text.chars().map(|char| match char {
        ' '..='~' if !matches!(char, '"' | '\\') => char.to_string(),
        char => format!("\\U{:08x}", u32::from(char)),
    });
    format!("\"{}\"", escaped.collect::<String>())
}

/// Returns a file in which every text is hostile.
fn file(skills: &str) -> String {
    let [name, title, instructions, tool, argument, choice, prints, fails, asks] = [
        "server-name",
        "title",
        "instructions",
        "tool",
        "argument",
        "choice",
        "printed",
        "failed",
        "asked",
    ]
    .map(|word| toml(&harm(word)));
    let request = json!({"input": "k", "message": harm("message")}).to_string();
    format!(
        r#"
[server]
name = {name}
title = {title}
instructions = {instructions}
skills = {skills}

[tools.say]
description = {tool}
command = ["printf", "%s\n", "{{text}}"]
[tools.say.arguments]
text = {{ type = "string", description = {argument}, enum = [{choice}, {prints}] }}

[tools.fail]
description = {fails}
command = ["sh", "-c", "printf '%s\n' \"$0\"; printf '%s\n' \"$0\" >&2; exit 3", {fails}]

[tools.ask]
description = {asks}
interactive = true
command = ["sh", "-c", "printf '%s\n' \"$0\" >&3; read -r response <&4", {request}]
"#,
        skills = toml(skills),
        request = toml(&request),
    )
}

/// Sends an invalid request, and waits for the end of the response.
fn send(address: &str, head: &str, body: &str) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let length = body.len();
    let request = format!("{head}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}");
    // A server that rejects a request early may not read it to its end.
    let _ = stream.write_all(request.as_bytes());
    let _ = stream.read_to_end(&mut Vec::new());
}

/// Sends hostile requests, with and without a token.
fn requests(address: &str, token: &str) {
    let (line, rest) =
        harm("header").split_once('\r').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    // Bytes that no header may contain are left out, so that the server reads the rest.
    let value: String = line.chars().filter(|char| !char.is_ascii_control()).collect();
    let body = json!({"jsonrpc": "2.0", "id": harm("id"), "method": harm("method"), "params": {"name": harm("name"),
        "_meta": {"io.modelcontextprotocol/protocolVersion": harm("version"), "progressToken": harm("token"),
            "io.modelcontextprotocol/clientInfo": {"name": harm("client"), "version": harm("version")}}}});
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion":
        harm("version"), "capabilities": {}, "clientInfo": {"name": harm("client"), "version": harm("version")}}});
    let json = "content-type: application/json\r\naccept: application/json, text/event-stream";
    for (path, header) in [
        (format!("/{line}"), String::new()),
        ("/%1b%5b2J%e2%80%ae".to_owned(), String::new()),
        ("/mcp".to_owned(), format!("x: {line}")),
        ("/mcp".to_owned(), format!("origin: http://{value}")),
        ("/mcp".to_owned(), format!("authorization: Bearer {value}")),
        ("/mcp".to_owned(), format!("authorization: Bearer {token}\r\nuser-agent: {value}")),
        (
            "/mcp".to_owned(),
            format!("authorization: Bearer {token}\r\nmcp-protocol-version: {value}"),
        ),
        ("/mcp".to_owned(), format!("authorization: Bearer {token}\r\nmcp-session-id: {value}")),
        (
            "/mcp".to_owned(),
            format!("authorization: Bearer {token}\r\nmcp-method: {value}\r\nmcp-name: {value}"),
        ),
        (
            "/mcp".to_owned(),
            format!(
                "authorization: Bearer {token}\r\nx-forwarded-for: {value}\r\nlast-event-id: {value}"
            ),
        ),
    ] {
        for body in [body.to_string(), initialize.to_string(), rest.clone()] {
            send(
                address,
                &format!("POST {path} HTTP/1.1\r\nhost: {address}\r\n{json}\r\n{header}"),
                &body,
            );
        }
        send(address, &format!("GET {path} HTTP/1.1\r\nhost: {value}\r\n{header}"), "");
    }
}

/// Makes calls with hostile arguments.
async fn calls(url: &str, token: &str) {
    let answers = InputCallbacks::new().form(|_| std::future::pending::<InputResponse>());
    let client = Client::builder(harm("client"), harm("client-version"))
        .token(token)
        .input_handler(answers)
        .connect(url)
        .await
        .unwrap();
    // The responses do not matter here: the test checks what the operator sees.
    let _ = client.call_tool("say", json!({"text": harm("printed")})).await;
    let _ =
        client.call_tool("say", json!({"text": harm("no-choice"), harm("no-argument"): 1})).await;
    let _ = client.call_tool("fail", json!({})).await;
    let _ = client.call_tool(harm("no-tool"), json!({})).await;
    let keyed = client.call_tool("say", json!({"text": harm("printed")}));
    let _ = keyed.idempotency_key(harm("key")).await;
    let _ = client.read_resource(harm("uri")).await;
    let _ = client.request(harm("method"), json!({harm("member"): harm("value")})).await;
    let _ = client.task(harm("task")).await.unwrap().get().await;
    // Leaves a command behind that waits for input.
    let call = async { client.call_tool("ask", json!({})).await };
    let left = tokio::time::timeout(Duration::from_secs(2), call).await;
    assert!(left.is_err(), "the call did not wait: {left:?}");
}

/// Creates a folder of hostile skills.
fn skills(folder: &Path) {
    let skill = folder.join("harm");
    fs::create_dir_all(&skill).unwrap();
    let description = toml(&harm("skill"));
    fs::write(
        skill.join("SKILL.md"),
        format!("---\nname: harm\ndescription: {description}\n---\n"),
    )
    .unwrap();
    fs::write(skill.join(harm("skill-file")), "").unwrap();
}

/// Returns the address that a server prints.
fn address(serving: &Recorded) -> String {
    let said = serving.until("/mcp");
    let (_, rest) = said.split_once("http://").unwrap();
    rest.split_once("/mcp").unwrap().0.to_owned()
}

#[tokio::test]
async fn hostile_callers_and_files_do_not_control_operator_terminal() {
    let driver = Driver::new(SERVING);
    let place = Path::new(&driver.outlive.folder.file("")).join(harm("folder"));
    let (toml_file, token) = (place.join("outlive.toml"), "0123456789-0123456789");
    let named: String = harm("caller").chars().filter(|char| !char.is_whitespace()).collect();
    let named = named.replace(':', "");
    fs::create_dir_all(&place).unwrap();
    skills(&place.join(harm("skills")));
    fs::write(&toml_file, file(&harm("skills"))).unwrap();
    let tokens = place.join("tokens");
    fs::write(&tokens, format!("{named} {token}\n")).unwrap();
    let (toml_file, tokens) = (toml_file.to_str().unwrap(), tokens.to_str().unwrap());
    let data = driver.outlive.folder.file("d");
    for host in ["cursor", "claude-code", "codex"] {
        let connect = ["connect", host, "--file", toml_file];
        driver.run(&connect).check(Kind::Talk, &["server-name"]);
    }
    let written = place.join("new.toml");
    let init = ["init", "--file", written.to_str().unwrap(), "--", &harm("program"), "{a}"];
    driver.run(&init).check(Kind::Talk, &["folder"]);
    for log in ["OUTLIVE_LOG=trace", "OUTLIVE_LOG=trace OUTLIVE_LOG_FORMAT=json"] {
        let serve = [
            "serve",
            toml_file,
            "--listen",
            "127.0.0.1:0",
            "--data-dir",
            &data,
            "--token-file",
            tokens,
        ];
        let serving = driver.run_with(log, &serve);
        let address = address(&serving);
        requests(&address, token);
        calls(&format!("http://{address}/mcp"), token).await;
        let jobs = ["--data-dir", data.as_str()];
        let list = driver.run(&[&["jobs", "list"][..], &jobs].concat());
        list.check(Kind::Talk, &["message"]);
        driver
            .run(&[&["jobs", "list", "--json"][..], &jobs].concat())
            .check(Kind::Talk, &["message", "caller"]);
        let listed = driver.outlive.json(&[&["jobs", "list", "--json"][..], &jobs].concat());
        let job = listed["id"].as_str().unwrap();
        driver.run(&[&["jobs", "end", job][..], &jobs].concat()).check(Kind::Talk, &[]);
        // Changes the file while it is served, first with a mistake.
        let good = fs::read_to_string(toml_file).unwrap();
        fs::write(toml_file, format!("{good}\n[tools.{}]\ncommand = 3\n", toml(&harm("bad"))))
            .unwrap();
        serving.until("tools and upstreams are unchanged");
        fs::write(toml_file, good.replace("; exit ", "; exit 1")).unwrap();
        serving.until("reloaded");
        serving.terminal.press(&["C-c"]);
        serving.check(Kind::Talk, &["folder", "server-name", "bad", "caller"]);
    }
    let unknown = harm("word");
    driver.run(&["jobs", "end", &unknown, "--data-dir", &data]).check(Kind::Talk, &["word"]);

    // An error about a file quotes the file.
    let wrong = place.join(harm("file"));
    let [key, tool, value] = ["key", "tool", "value"].map(|word| toml(&harm(word)));
    let mistakes = format!(
        "[server]\n{key} = 1\nlisten = {value}\nstore = {value}\n[tools.{tool}]\ncommand = [{value}]\n\
         [tools.good]\ndescription = \"\"\ncommand = [{value}]\ntask = {value}\nworking_dir = {value}\n\
         [tools.good.arguments]\n{key} = {{ type = {value}, pattern = {value}, default = {value} }}\n"
    );
    fs::write(&wrong, mistakes).unwrap();
    let wrong = wrong.to_str().unwrap();
    let missing = place.join(harm("no-file"));
    let missing = missing.to_str().unwrap();
    for command in ["serve", "doctor"] {
        driver.run(&[command, wrong]).check(Kind::Talk, &["file", "tool", "key", "value"]);
        driver.run(&[command, missing]).check(Kind::Talk, &["no-file"]);
        let below = format!("sqlite:{wrong}/tasks.db");
        for (option, value, word) in [
            ("--listen", harm("listen").as_str(), "listen"),
            ("--token-file", missing, "no-file"),
            ("--store", &below, "file"),
        ] {
            let words = [command, toml_file, "--data-dir", &data, option, value];
            driver.run(&words).check(Kind::Talk, &[word]);
        }
    }
    driver
        .run(&["doctor", toml_file, "--data-dir", missing])
        .check(Kind::Talk, &["no-file", "folder"]);
    driver.run(&["doctor", toml_file, "--json"]).check(Kind::Talk, &["folder"]);
    driver.run(&["doctor", toml_file, "--token-file", tokens]).check(Kind::Talk, &[]);
}

/// Creates a store with tasks of hostile callers: one requires input, one is quarantined, two have
/// ended.
async fn store(url: &str) {
    let store = open(url).await.unwrap();
    let new = |id: &str| {
        task(id, &format!("name:{}", harm("principal")), &harm("tool")).request(raw(
            &json!({"name": harm("name"), "arguments": {harm("argument"): harm("value")}}),
        ))
    };
    let event = |id: &str| {
        AuditEvent::new(id, format!("name:{}", harm("principal")), harm("what"))
            .reason(Some(harm("cause")))
    };
    let form: InputRequest = serde_json::from_value(json!({"method": "elicitation/create", "params": {"mode": "form",
        "message": harm("question"), "requestedSchema": {"type": "object", "required": [harm("field")],
            "properties": {harm("field"): {"type": "string", "title": harm("title")}}}}}))
    .unwrap();
    let error = |word: &str| ErrorObject {
        code: -32603,
        message: harm(word),
        data: Some(raw(&json!({harm("data"): harm("data")}))),
    };
    for id in ["asks", "kept", "ended", "again"] {
        let lease = start(&*store, new(id)).await;
        let asked = NewInputRequest::new(harm("key"), harm("asked"), Some(form.clone()));
        let changes = Changes::default()
            .entries(vec![
                RecordedEntry::new(
                    harm("entry"),
                    JournalEntry::Value(raw(&json!({harm("member"): harm("recorded")}))),
                ),
                RecordedEntry::new(
                    harm("secret"),
                    JournalEntry::Secret(raw(&json!(harm("hidden")))),
                ),
            ])
            .status_message(Some(harm("status")))
            .input_requests(if id == "asks" { vec![asked] } else { Vec::new() });
        let then = match id {
            "kept" => Transition::Quarantine {
                outcome: TaskOutcome::Error(error("kept")),
                ttl: Duration::from_secs(3600),
            },
            "ended" | "again" => Transition::End {
                outcome: TaskOutcome::Error(error("ended")),
                retention: Duration::from_secs(3600),
            },
            _ => Transition::Continue,
        };
        store.commit(&lease, &changes, &then).await.unwrap();
        store.append(vec![event(id)], Duration::from_secs(60), 1_000).await.unwrap();
    }
    // No server creates such IDs, but another program may write them to the store.
    store.create(new("id").id(TaskId::new(harm("id")))).await.unwrap();
}

#[tokio::test]
async fn hostile_tasks_of_callers_do_not_control_operator_terminal() {
    let driver = Driver::new(STORE);
    let folder = driver.outlive.folder.file("");
    let folder = Path::new(&folder).join(harm("folder"));
    fs::create_dir_all(&folder).unwrap();
    let url = format!("sqlite:{}/tasks.db", folder.display());
    let none = format!("sqlite:{}/none.db", folder.display());
    store(&url).await;
    let id = harm("id");
    let there = ["--store", url.as_str()];
    let shown = ["tool", "principal", "status", "id"];
    driver.run(&["store", "list", &url, "--all"]).check(Kind::Talk, &shown);
    driver.run(&["store", "list", &url, "--json"]).check(Kind::Talk, &shown);
    driver.run(&["store", "list", &none]).check(Kind::Talk, &["folder"]);
    driver.run(&[&["tasks", "list"][..], &there].concat()).check(Kind::Talk, &shown);
    let whole = ["name", "argument", "value", "entry", "recorded", "what", "cause"];
    for (task, words) in [("asks", &["asked"][..]), ("kept", &["kept"]), ("ended", &["ended"])] {
        let show = ["store", "show", url.as_str(), task];
        driver
            .run(&[&show[..], &["--full"]].concat())
            .check(Kind::Talk, &[&whole[..], words].concat());
        driver.run(&show).check(Kind::Talk, words);
        driver
            .run(&[&show[..], &["--json"]].concat())
            .check(Kind::Talk, &[&whole[..], words].concat());
    }
    let unknown = harm("unknown");
    driver.run(&["store", "show", &url, &unknown]).check(Kind::Talk, &["unknown"]);
    driver.run(&["store", "retry", &url, "kept"]).check(Kind::Talk, &[]);
    driver
        .run(&["store", "retry", &url, &id, "ended", &unknown])
        .check(Kind::Talk, &["id", "unknown"]);
    driver
        .run(&[&["tasks", "answer", "asks"][..], &there, &["--answer", "nofield=1"]].concat())
        .check(Kind::Talk, &["field"]);
    let answer = driver.run(&[&["tasks", "answer", "asks"][..], &there].concat());
    answer.until("<title>");
    answer.terminal.enter("x");
    answer.check(Kind::Talk, &["question", "title"]);
    driver
        .run(&[&["tasks", "cancel", "ended", &id][..], &there].concat())
        .check(Kind::Talk, &["id"]);
    driver
        .run(&[&["tasks", "cancel", &unknown][..], &there].concat())
        .check(Kind::Talk, &["unknown"]);
    driver
        .run(&["store", "purge", &url, "ended", "asks", &unknown])
        .check(Kind::Talk, &["unknown"]);
    driver.run(&["store", "purge", &url, &id, "--force", "--json"]).check(Kind::Talk, &["id"]);
    driver.run(&["store", "migrate", &url]).check(Kind::Talk, &[]);
    driver.run(&["store", "migrate", &none]).check(Kind::Talk, &[]);
    let nowhere = format!("sqlite:{}/tasks.db/none.db", folder.display());
    driver.run(&["store", "migrate", &nowhere]).check(Kind::Talk, &["folder"]);
}
