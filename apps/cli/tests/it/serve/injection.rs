//! Values of callers reach the command as plain text, or are rejected.

use outlive::client::{Client, request::result_text};
use proptest::{
    collection::vec,
    prelude::{Just, Strategy, any, prop_oneof},
    strategy::ValueTree,
    test_runner::{Config, TestRunner},
};
use serde_json::{Value, json};

use super::Place;

/// Prints each argument on a separate line as hexadecimal digits, so that its contents cannot
/// affect the output.
const SHOW: &str = "for word; do printf 'word '; printf '%s' \"$word\" | od -An -v -tx1 | tr -d ' \\n'; echo; done";

/// The tools never become tasks: a task has a segment per line, and splits lines of more than 64 KiB.
fn file() -> String {
    format!(
        r#"
[tools.words]
task = "never"
description = "A value as a word, inside a word, behind an option, and as a list."
command = ["sh", "-c", '''{SHOW}''', "show", "--", "{{text}}", "in-{{text}}-side", "{{list}}"]
[tools.words.arguments]
text = {{ type = "string" }}
list = {{ type = "array" }}

[tools.guarded]
task = "never"
description = "A value where an option could stand."
command = ["sh", "-c", '''{SHOW}''', "show", "{{text}}"]
[tools.guarded.arguments]
text = {{ type = "string" }}

[tools.variable]
task = "never"
description = "A value in the environment."
command = ["sh", "-c", '''set -- "$VALUE"; {SHOW}''']
env = {{ VALUE = "{{text}}" }}
[tools.variable.arguments]
text = {{ type = "string" }}

[tools.shell]
task = "never"
description = "A value for a shell."
shell = true
command = '''set -- "$arg_text"; {SHOW}'''
[tools.shell.arguments]
text = {{ type = "string" }}

[tools.input]
task = "never"
description = "A value on standard input."
command = ["sh", "-c", '''printf 'word '; od -An -v -tx1 | tr -d ' \n'; echo''']
stdin = "{{text}}"
[tools.input.arguments]
text = {{ type = "string" }}

[tools.typed]
description = "Numbers, switches and choices."
command = ["sh", "-c", '''{SHOW}''', "show", "{{integer}}", "{{number}}", {{ when = "flag", args = ["yes"] }}, "{{choice}}"]
[tools.typed.arguments]
integer = {{ type = "integer" }}
number = {{ type = "number" }}
flag = {{ type = "boolean" }}
choice = {{ type = "string", enum = ["a", "b"] }}
"#
    )
}

/// Texts that are known to cause injections elsewhere.
fn hostile() -> impl Strategy<Value = String> {
    let known = prop_oneof![
        Just("; touch pwned".to_owned()),
        Just("$(touch pwned)".to_owned()),
        Just("`touch pwned`".to_owned()),
        Just("| cat /etc/passwd".to_owned()),
        Just("&& touch pwned".to_owned()),
        Just("a\nb\n".to_owned()),
        Just("\r\n".to_owned()),
        Just("-rf".to_owned()),
        Just("--help".to_owned()),
        Just("'".to_owned()),
        Just("\"; touch pwned; \"".to_owned()),
        Just("{text}".to_owned()),
        Just("$HOME ${PATH} %s %n".to_owned()),
        Just("*".to_owned()),
        Just("a\0b".to_owned()),
        Just("\u{202e}\u{0}\u{feff}".to_owned()),
        Just("x".repeat(140_000)),
        Just("ü".repeat(60_000)),
        Just(String::new()),
        Just("@outlive {\"ask\": \"x\"}".to_owned()),
        Just("\u{1b}]0;title\u{7}".to_owned()),
    ];
    let parts =
        vec(prop_oneof![known.clone(), any::<char>().prop_map(String::from), "[ -~]{0,8}"], 1..4);
    prop_oneof![known, parts.prop_map(|parts| parts.concat())]
}

/// Tools that pass a text to a command in different ways.
const TOOLS: [&str; 5] = ["words", "guarded", "variable", "shell", "input"];

async fn call(client: &Client, tool: &str, arguments: Value) -> Result<Vec<String>, String> {
    let result = client.call_tool(tool, arguments).await.map_err(|error| error.to_string())?;
    let text = result_text(&result);
    if result.is_error == Some(true) {
        return Err(text);
    }
    Ok(text.lines().map(|line| decode(line.strip_prefix("word ").expect("a word"))).collect())
}

fn decode(hex: &str) -> String {
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    String::from_utf8(hex.as_bytes().chunks(2).map(byte).collect()).unwrap()
}

#[tokio::test]
async fn hostile_values_are_passed_exactly_or_rejected() {
    let place = Place::new(&file());
    let client = place.client().await;
    let mut runner = TestRunner::new(Config { cases: 200, ..Config::default() });
    let (mut reached, mut refused) = (0, 0);
    for case in 0..200 {
        let text = hostile().new_tree(&mut runner).unwrap().current();
        let shown = || text.chars().take(60).collect::<String>();
        let tool = TOOLS[case % TOOLS.len()];
        let (arguments, expected) = match tool {
            "words" => (
                json!({"text": text, "list": [text, "b"]}),
                vec![
                    "--".into(),
                    text.clone(),
                    format!("in-{text}-side"),
                    text.clone(),
                    "b".into(),
                ],
            ),
            _ => (json!({"text": text}), vec![text.clone()]),
        };
        let impossible = text.contains('\0') || text.len() > 131_000;
        let option = tool == "guarded" && text.starts_with('-');
        match call(&client, tool, arguments).await {
            Ok(words) => {
                assert!(words == expected, "{tool}: {:?} became {} words", shown(), words.len());
                assert!(!option, "{tool} took an option: {:?}", shown());
                reached += 1;
            }
            Err(why) => {
                assert!(impossible || option, "{tool} refused {:?}: {why}", shown());
                assert!(
                    ["NUL", "longer", "option"].iter().any(|reason| why.contains(reason)),
                    "{why}"
                );
                refused += 1;
            }
        }
    }
    assert!(reached > 100 && refused > 5, "{reached} reached, {refused} refused");
    assert!(!place.folder.join("pwned").exists());
}

#[tokio::test]
async fn typed_values_violating_schema_are_rejected() {
    let place = Place::new(&file());
    let client = place.client().await;
    let good = json!({"integer": 3, "number": 1.5, "flag": true, "choice": "a"});
    assert_eq!(call(&client, "typed", good).await.unwrap(), ["3", "1.5", "yes", "a"]);
    for (argument, value) in [
        ("integer", json!("1; touch pwned")),
        ("integer", json!(1.5)),
        ("integer", json!(-9)),
        ("number", json!(-0.5)),
        ("number", json!("$(id)")),
        ("flag", json!("yes")),
        ("flag", json!("--force")),
        ("choice", json!("c")),
        ("choice", json!("a\nb")),
        ("choice", json!(["a"])),
        ("extra", json!(1)),
    ] {
        let mut arguments = json!({"integer": 1, "number": 1, "flag": false, "choice": "b"});
        arguments[argument] = value;
        let why = call(&client, "typed", arguments).await.expect_err("should be rejected");
        assert!(why.contains(argument), "{why}");
    }
}

/// Bytes that are not valid JSON never reach a tool.
#[tokio::test]
async fn request_with_invalid_utf8_is_rejected() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let place = Place::new(&file());
    let host = place.url().trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
    let body = [
        &b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"guarded\",\"arguments\":{\"text\":\"a\xff\xfe\"},\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\"io.modelcontextprotocol/clientCapabilities\":{}}}}"[..],
    ]
    .concat();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: guarded\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let mut stream = tokio::net::TcpStream::connect(&host).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(&body).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    assert!(answer.contains("-32700"), "{answer}");
}
