//! The file as a whole: the demo, defaults, and mistakes with their lines.

use serde_json::json;

use super::{OnCrash, TaskMode, demo, parse};

#[test]
fn the_demo_can_be_read() {
    let demo = demo();
    let names: Vec<&str> = demo.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["countdown", "release", "disk"]);
}

#[test]
fn arguments_become_a_schema() {
    let text = r#"
[tools.scale]
description = "Scales a picture."
command = ["scale", "{file}", "{percent}", "{filter}"]
[tools.scale.arguments.file]
type = "string"
description = "Which."
max_length = 200
[tools.scale.arguments.percent]
type = "integer"
minimum = 1
maximum = 400
default = 100
[tools.scale.arguments.filter]
type = "string"
enum = ["box", "sinc"]
required = false
"#;
    let config = parse(text).expect("is a file");
    assert_eq!(
        config.tools[0].input_schema(),
        json!({
            "type": "object",
            "properties": {
                "file": {"type": "string", "description": "Which.", "maxLength": 200},
                "percent": {"type": "integer", "minimum": 1, "maximum": 400, "default": 100},
                "filter": {"type": "string", "enum": ["box", "sinc"]},
            },
            "additionalProperties": false,
            "required": ["file"],
        })
    );
}

#[test]
fn what_changes_nothing_is_run_again_after_a_crash() {
    let tool = |rest: &str| {
        let text = format!("[tools.t]\ndescription = \"d\"\ncommand = [\"c\"]\n{rest}");
        parse(&text).unwrap_or_else(|problem| panic!("{problem}")).tools.remove(0)
    };
    assert_eq!(tool("").on_crash, OnCrash::Fail);
    assert_eq!(tool("read_only = true").on_crash, OnCrash::RunAgain);
    assert_eq!(tool("idempotent = true\non_crash = \"fail\"").on_crash, OnCrash::Fail);
    assert_eq!(tool("task = \"never\"").task, TaskMode::Never);
}

#[test]
fn mistakes_name_their_line() {
    for (text, line, says) in [
        ("", 1, "no tools"),
        ("[server]\nname = 3\n", 2, "`server.name` must be a string, and is an integer"),
        ("[tools.t]\ncommand = [\"c\"]\n", 1, "has no description"),
        ("[tools.t]\ndescription = \"d\"\n", 1, "has no command"),
        (
            "[tools.t]\ndescription = \"d\"\ncommand = [\"c\"]\ntime_limit = \"soon\"\n",
            4,
            "a span of time",
        ),
        (
            "[tools.t]\ndescription = \"d\"\ncommand = [\"c\"]\ntask = \"maybe\"\n",
            4,
            "no way to make tasks",
        ),
        ("[tools.t]\ndescription = \"d\"\ncommand = [\"c\"]\nmax_output = 3\n", 4, "an amount"),
        (
            "[tools.t]\ndescription = \"d\"\ncommand = [\"c\"]\n[tools.t.arguments.a]\ntype = \"text\"\n",
            5,
            "no type of an argument",
        ),
        (
            "[tools.t]\ndescription = \"d\"\ncommand = [\"c\"]\n[tools.t.arguments.a]\ntype = \"string\"\nminimum = 1\n",
            6,
            "means nothing for this type",
        ),
        (
            "[tools.t]\ndescription = \"d\"\ncommand = [\"c\"]\n[tools.t.arguments.a]\ntype = \"integer\"\ndefault = \"1\"\n",
            6,
            "not of the argument's type",
        ),
        (
            "[tools.\"a b\"]\ndescription = \"d\"\ncommand = [\"c\"]\n",
            1,
            "cannot be the name of a tool",
        ),
        ("[server]\nport = 1\n", 2, "`port` means nothing in [server]"),
        ("[server]\ntrust_proxies = [\n  \"proxy\",\n]\n", 3, "is no address"),
    ] {
        let problem = parse(text).expect_err("should be refused").to_string();
        assert!(problem.starts_with(&format!("line {line}: ")), "{problem}");
        assert!(problem.contains(says), "{problem}");
    }
}
