//! Filled commands, and rejected values.

use serde_json::{Map, Value as Json, json};

use super::super::{file::parse, tool::ToolConfig};

fn tool(rest: &str) -> ToolConfig {
    let text = format!("[tools.t]\ndescription = \"d\"\n{rest}");
    let mut config = parse(&text).unwrap_or_else(|problem| panic!("{problem}"));
    config.tools.remove(0)
}

fn refused(rest: &str) -> String {
    let text = format!("[tools.t]\ndescription = \"d\"\n{rest}");
    parse(&text).expect_err("should be rejected").to_string()
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
fn words_of_group_are_filled_or_omitted_together() {
    let render = tool(RENDER);
    assert_eq!(argv(&render, json!({"scene": "a b"})), ["render", "a b"]);
    assert_eq!(
        argv(&render, json!({"scene": "a", "width": 3, "fast": true, "layers": ["x y", "z"]})),
        ["render", "a", "--size", "3x100", "--fast", "x y", "z"]
    );
    assert_eq!(argv(&render, json!({"scene": "a", "layers": []})), ["render", "a"]);
}

#[test]
fn value_starting_with_dash_is_rejected() {
    let render = tool(RENDER);
    for given in [json!({"scene": "-rf"}), json!({"scene": "a", "layers": ["b", "--all"]})] {
        let refused = render.ready(values(given)).err().expect("should be rejected");
        assert!(refused.0.contains("starts with `-`"), "{}", refused.0);
    }
    // Accepted with `allow_dash`, after `--`, and inside a word.
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
fn negative_number_without_allow_dash_is_rejected() {
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
        let refused = refused.err().expect("should be rejected");
        assert!(refused.0.contains("starts with `-`"), "{}", refused.0);
        for allowed in [with(", allow_dash = true", "\"{a}\""), with("", "\"--\", \"{a}\"")] {
            assert!(allowed.ready(values(json!({"a": given.clone()}))).is_ok(), "{kind}");
        }
    }
    let number =
        tool("command = [\"c\", \"--at={a}\"]\n[tools.t.arguments]\na = { type = \"integer\" }");
    assert_eq!(argv(&number, json!({"a": -5})), ["c", "--at=-5"]);
}

#[test]
fn value_with_nul_or_above_size_limit_is_rejected() {
    let echo =
        tool("command = [\"echo\", \"{a}\"]\n[tools.t.arguments]\na = { type = \"string\" }");
    let nul = echo.ready(values(json!({"a": "x\0y"}))).err().expect("should be rejected");
    assert!(nul.0.contains("NUL"), "{}", nul.0);
    let long =
        echo.ready(values(json!({"a": "x".repeat(200_000)}))).err().expect("should be rejected");
    assert!(long.0.contains("longer than"), "{}", long.0);
}

#[test]
fn shell_command_gets_values_as_variables() {
    let shell = tool(
        "shell = true\ncommand = \"echo \\\"$arg_a\\\"\"\n[tools.t.arguments]\na = { type = \"string\" }\nb = { type = \"array\", required = false }",
    );
    let Ok(ready) = shell.ready(values(json!({"a": "$(touch pwned)", "b": ["1", "2"]}))) else {
        panic!("text in a variable is safe")
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
fn mistake_in_command_is_found_at_load() {
    for (rest, says) in [
        ("command = \"echo {a}\"", "`shell` is not set"),
        ("command = [\"echo\"]\nshell = true", "`command` must be a string"),
        (
            "command = [\"{a}\"]\n[tools.t.arguments]\na = { type = \"string\" }",
            "must not be a placeholder",
        ),
        ("command = []", "is empty"),
        ("command = [\"echo\", \"{b}\"]", "unknown argument `b`"),
        (
            "command = [\"echo\", \"x{a}\"]\n[tools.t.arguments]\na = { type = \"array\" }",
            "a list as part of a word",
        ),
        (
            "command = \"echo {a}\"\nshell = true\n[tools.t.arguments]\na = { type = \"string\" }",
            "as script text",
        ),
        ("command = [\"echo\", { when = \"a\" }]", "require `when` and `args`"),
    ] {
        let problem = refused(rest);
        assert!(problem.contains(says), "{rest}: {problem}");
        assert!(problem.starts_with("line "), "{problem}");
    }
}

#[test]
fn literal_braces_are_kept() {
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
