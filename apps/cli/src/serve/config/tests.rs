//! The file as a whole: the demo, defaults, and mistakes with their lines.

use std::collections::BTreeSet;

use serde_json::json;

use super::{Config, DEMO, OnCrash, TaskMode, demo, in_words, parse, parse_noting, tool::Asked};

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
        (
            "[tools.t]\ndescription = \"d\"\ncomand = [\"c\"]\n",
            3,
            "`comand` means nothing in [tools.t]",
        ),
        ("[server]\nport = 1\n", 2, "`port` means nothing in [server]"),
        ("[auth]\nissuer = \"https://id\"\n", 1, "[auth] has no `resource`"),
        (
            "[auth]\nresource = \"https://a/mcp\"\nisuer = \"https://id\"\n",
            3,
            "`isuer` means nothing",
        ),
        (
            "[auth]\nresource = \"https://a/mcp\"\nissuer = \"https://id\"\nintrospection_url = \"https://id/i\"\n",
            4,
            "or by asking about them",
        ),
        (
            "[server]\ntoken_file = \"t\"\n[auth]\nresource = \"https://a/mcp\"\nissuer = \"https://id\"\n",
            3,
            "not of both",
        ),
        (
            "[auth]\nresource = \"https://a/mcp\"\nissuer = \"https://id\"\ndpop = \"maybe\"\n",
            4,
            "`maybe` is no way to take proofs",
        ),
        ("[auth]\nresource = \"https://a/mcp\"\n", 1, "[auth] has no `issuer`"),
        (
            "[auth]\nresource = \"https://a/mcp\"\n[auth.proxy]\nclient_id = \"x\"\n",
            3,
            "[auth.proxy] has no `upstream`",
        ),
        (
            "[auth]\nresource = \"https://a/mcp\"\n[auth.proxy]\nupstream = \"https://id\"\ntoken_url = \"https://id/t\"\n",
            3,
            "by its name, or by its addresses",
        ),
        (
            "[auth]\nresource = \"https://a/mcp\"\n[auth.proxy]\nupstream = \"https://id\"\nclient_id = \"x\"\nsecret_env = \"S\"\n",
            3,
            "does not say who may log in",
        ),
        (
            "[auth]\nresource = \"https://a/mcp\"\n[auth.issuers.two]\naudiences = [\"a\"]\n",
            3,
            "[auth.issuers.two] has no `issuer`",
        ),
        (
            "[auth]\nresource = \"https://a/mcp\"\nissuer = \"https://id\"\n[auth.issuers.two]\nissuer = \"https://id\"\n",
            1,
            "https://id is there twice",
        ),
        (
            "[tools.t]\ndescription = \"d\"\ncommand = [\"c\"]\nscopes = [\n  \"a b\",\n]\n",
            5,
            "`a b` is no scope",
        ),
        (
            "[tools.t]\ndescription = \"d\"\ncommand = [\"c\"]\nscopes = [\"a\"]\n",
            1,
            "the tool `t` needs scopes, and nobody gives them",
        ),
        ("[server]\ntrust_proxies = [\n  \"proxy\",\n]\n", 3, "is no address"),
    ] {
        let problem = parse(text).expect_err("should be refused").to_string();
        assert!(problem.starts_with(&format!("line {line}: ")), "{problem}");
        assert!(problem.contains(says), "{problem}");
    }
}

const PAGE: &str = include_str!("../../../../../docs/outlive-toml.md");

/// The rows of the table under a heading: key and default.
fn rows(section: &str) -> Vec<(String, String)> {
    let heading = format!("\n## `[{section}]`\n");
    let (_, after) =
        PAGE.split_once(&heading).unwrap_or_else(|| panic!("the page has no [{section}]"));
    let body = after.split("\n## ").next().unwrap_or_default();
    let rows = body.lines().filter(|line| line.starts_with("| `"));
    let cell = |text: &str| text.trim().trim_matches('`').to_owned();
    rows.map(|row| {
        let cells: Vec<&str> = row.split('|').collect();
        (cell(cells[1]), cells[3].trim().to_owned())
    })
    .collect()
}

#[test]
fn the_page_has_every_key_and_no_other() {
    let mut asked = Asked::default();
    parse_noting(DEMO, &mut asked).expect("is a file");
    for (section, keys) in asked.0 {
        let said: BTreeSet<String> = rows(section).into_iter().map(|(key, _)| key).collect();
        let known: BTreeSet<String> = keys.into_iter().map(str::to_owned).collect();
        assert_eq!(said, known, "what the page says of [{section}], and what is read");
    }
}

#[test]
fn the_page_says_the_defaults() {
    let Config { server, tasks, tools, .. } =
        parse("[tools.t]\ndescription = \"d\"\ncommand = [\"c\"]\n").expect("is a file");
    let tool = &tools[0];
    let TaskMode::Auto { after } = tool.task else { panic!("calls become tasks by default") };
    for (section, key, default) in [
        ("server", "name", server.name.clone()),
        ("server", "version", server.version.clone()),
        ("server", "listen", server.listen.clone()),
        ("server", "open_to_anyone", server.open_to_anyone.to_string()),
        ("tasks", "ttl", in_words(tasks.ttl)),
        ("tasks", "max_ttl", in_words(tasks.max_ttl)),
        ("tasks", "poll_interval", in_words(tasks.poll_interval)),
        ("tasks", "max_per_caller", tasks.max_per_caller.to_string()),
        (
            "tasks",
            "max_store_bytes_per_caller",
            format!("{} MiB", tasks.max_store_bytes_per_caller >> 20),
        ),
        ("tasks", "max_store", format!("{} MiB", tasks.max_store >> 20)),
        ("tasks", "max_running", tasks.max_running.to_string()),
        ("tasks", "lost_after", in_words(tasks.lost_after)),
        ("tools.NAME", "time_limit", in_words(tool.time_limit)),
        ("tools.NAME", "end_grace", in_words(tool.end_grace)),
        ("tools.NAME", "max_output", format!("{} MiB", tool.max_output >> 20)),
        ("tools.NAME", "max_lines", tool.max_lines.to_string()),
        ("tools.NAME", "concurrency", tool.concurrency.to_string()),
        ("tools.NAME", "task_after", in_words(after)),
        ("tools.NAME", "max_attempts", tool.max_attempts.to_string()),
        ("tools.NAME", "listed_always", tool.listed_always.to_string()),
        ("tools.NAME", "ok_codes", format!("{:?}", tool.ok_codes.iter().collect::<Vec<_>>())),
    ] {
        let said = rows(section).into_iter().find(|(known, _)| known == key);
        let (_, said) = said.unwrap_or_else(|| panic!("the page has no {key}"));
        assert_eq!(said, format!("`{default}`"), "[{section}] {key}");
    }
}

#[test]
fn the_examples_of_the_page_can_be_read() {
    let blocks = PAGE.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next());
    let mut count = 0;
    for block in blocks {
        parse(block).unwrap_or_else(|problem| panic!("{problem}:\n{block}"));
        count += 1;
    }
    assert!(count >= 3, "{count} examples");
}
