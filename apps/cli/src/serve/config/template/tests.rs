//! What values become, and what is refused.

use serde_json::{Map, Value as Json, json};

use super::super::{file::parse, tool::ToolConfig};

fn tool(rest: &str) -> ToolConfig {
    let text = format!("[tools.t]\ndescription = \"d\"\n{rest}");
    let mut config = parse(&text).unwrap_or_else(|problem| panic!("{problem}"));
    config.tools.remove(0)
}

fn refused(rest: &str) -> String {
    let text = format!("[tools.t]\ndescription = \"d\"\n{rest}");
    parse(&text).expect_err("should be refused").to_string()
}

fn values(values: Json) -> Map<String, Json> {
    match values {
        Json::Object(values) => values,
        _ => panic!("arguments are an object"),
    }
}

fn argv(tool: &ToolConfig, given: Json) -> Vec<String> {
    match tool.ready(values(given)) {
        Ok(ready) => ready.argv,
        Err(refused) => panic!("{}", refused.0),
    }
}

const RENDER: &str = r#"
command = ["render", "{scene}", ["--size", "{width}x{height}"], { when = "fast", args = ["--fast"] }, "{layers}"]
[tools.t.arguments]
scene = { type = "string" }
width = { type = "integer", required = false }
height = { type = "integer", default = 100 }
fast = { type = "boolean", default = false }
layers = { type = "array", required = false }
"#;

#[test]
fn words_are_filled_and_left_out_together() {
    let render = tool(RENDER);
    assert_eq!(argv(&render, json!({"scene": "a b"})), ["render", "a b"]);
    assert_eq!(
        argv(&render, json!({"scene": "a", "width": 3, "fast": true, "layers": ["x y", "z"]})),
        ["render", "a", "--size", "3x100", "--fast", "x y", "z"]
    );
    assert_eq!(argv(&render, json!({"scene": "a", "layers": []})), ["render", "a"]);
}

#[test]
fn a_value_is_never_an_option() {
    let render = tool(RENDER);
    for given in [json!({"scene": "-rf"}), json!({"scene": "a", "layers": ["b", "--all"]})] {
        let refused = render.ready(values(given)).err().expect("should be refused");
        assert!(refused.0.contains("begins with `-`"), "{}", refused.0);
    }
    // Where the author has said so, or behind `--`, or in the middle of a word, it is.
    let dashed = tool(
        "command = [\"c\", \"{a}\"]\n[tools.t.arguments]\na = { type = \"string\", allow_dash = true }",
    );
    assert_eq!(argv(&dashed, json!({"a": "-x"})), ["c", "-x"]);
    let behind =
        tool("command = [\"c\", \"--\", \"{a}\"]\n[tools.t.arguments]\na = { type = \"string\" }");
    assert_eq!(argv(&behind, json!({"a": "-x"})), ["c", "--", "-x"]);
    let inside =
        tool("command = [\"c\", \"--a={a}\"]\n[tools.t.arguments]\na = { type = \"string\" }");
    assert_eq!(argv(&inside, json!({"a": "-x"})), ["c", "--a=-x"]);
}

#[test]
fn negative_number_is_refused_as_an_option() {
    for (kind, given) in [
        ("type = \"integer\"", json!(-9)),
        ("type = \"number\"", json!(-0.5)),
        ("type = \"array\", items = \"integer\"", json!([1, -9])),
        ("type = \"array\", items = \"number\"", json!([-1.5])),
    ] {
        let with = |rest: &str, word: &str| {
            tool(&format!(
                "command = [\"kill\", {word}]\n[tools.t.arguments]\na = {{ {kind}{rest} }}"
            ))
        };
        let refused = with("", "\"{a}\"").ready(values(json!({"a": given.clone()})));
        let refused = refused.err().expect("should be refused");
        assert!(refused.0.contains("begins with `-`"), "{}", refused.0);
        for allowed in [with(", allow_dash = true", "\"{a}\""), with("", "\"--\", \"{a}\"")] {
            assert!(allowed.ready(values(json!({"a": given.clone()}))).is_ok(), "{kind}");
        }
    }
    let number =
        tool("command = [\"c\", \"--at={a}\"]\n[tools.t.arguments]\na = { type = \"integer\" }");
    assert_eq!(argv(&number, json!({"a": -5})), ["c", "--at=-5"]);
}

#[test]
fn what_no_command_can_be_given_is_refused() {
    let echo =
        tool("command = [\"echo\", \"{a}\"]\n[tools.t.arguments]\na = { type = \"string\" }");
    let nul = echo.ready(values(json!({"a": "x\0y"}))).err().expect("should be refused");
    assert!(nul.0.contains("NUL"), "{}", nul.0);
    let long =
        echo.ready(values(json!({"a": "x".repeat(200_000)}))).err().expect("should be refused");
    assert!(long.0.contains("longer than"), "{}", long.0);
}

#[test]
fn a_shell_gets_values_as_variables() {
    let shell = tool(
        "shell = true\ncommand = \"echo \\\"$arg_a\\\"\"\n[tools.t.arguments]\na = { type = \"string\" }\nb = { type = \"array\", required = false }",
    );
    let Ok(ready) = shell.ready(values(json!({"a": "$(touch pwned)", "b": ["1", "2"]}))) else {
        panic!("text is no danger")
    };
    assert_eq!(ready.argv, ["/bin/sh", "-c", "echo \"$arg_a\""]);
    assert_eq!(
        ready.env,
        [
            ("arg_a".to_owned(), "$(touch pwned)".to_owned()),
            ("arg_b".to_owned(), "1\n2".to_owned())
        ]
    );
}

#[test]
fn mistakes_in_commands_are_found_when_the_file_is_read() {
    for (rest, says) in [
        ("command = \"echo {a}\"", "no shell is to read it"),
        ("command = [\"echo\"]\nshell = true", "the command is one text"),
        (
            "command = [\"{a}\"]\n[tools.t.arguments]\na = { type = \"string\" }",
            "no caller may choose it",
        ),
        ("command = []", "is empty"),
        ("command = [\"echo\", \"{b}\"]", "there is no argument `b`"),
        (
            "command = [\"echo\", \"x{a}\"]\n[tools.t.arguments]\na = { type = \"array\" }",
            "a list inside a word",
        ),
        (
            "command = \"echo {a}\"\nshell = true\n[tools.t.arguments]\na = { type = \"string\" }",
            "as its own text",
        ),
        ("command = [\"echo\", { when = \"a\" }]", "need `when` and `args`"),
    ] {
        let problem = refused(rest);
        assert!(problem.contains(says), "{rest}: {problem}");
        assert!(problem.starts_with("line "), "{problem}");
    }
}

#[test]
fn braces_can_be_written() {
    for (written, meant) in [
        ("{{a}}", "{a}"),
        (r#"{"a": {"b": 1}}"#, r#"{"a": {"b": 1}}"#),
        ("${a} } {", "${a} } {"),
        ("{} {a b} {{", "{} {a b} {{"),
    ] {
        let braces = tool(&format!("command = [\"echo\", '{written}']"));
        assert_eq!(argv(&braces, json!({})), ["echo", meant]);
    }
}
