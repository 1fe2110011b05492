//! The file as a whole: the demo, defaults, and mistakes with their lines.

mod console; // the console, approvals and tags
mod hosts; // clients without tasks
mod notify; // receivers of notifications
mod schema; // apps/cli/outlive.schema.json
mod upstreams; // MCP servers behind this one

use std::collections::BTreeSet;

use serde_json::json;

use super::{
    Config, DEMO, OnCrash, SCHEMA, TaskMode,
    asked::Asked,
    demo,
    file::{parse, parse_noting},
    in_words,
};

#[test]
fn demo_file_is_valid() {
    let demo = demo();
    let names: Vec<&str> = demo.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["countdown", "release", "disk"]);
}

#[test]
fn tool_arguments_are_converted_to_schema() {
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
fn read_only_or_idempotent_tool_is_rerun_after_crash() {
    let tool = |rest: &str| {
        let text = format!("[tools.t]\ndescription = \"d\"\ncommand = [\"c\"]\n{rest}");
        parse(&text).unwrap_or_else(|problem| panic!("{problem}")).tools.remove(0)
    };
    assert_eq!(tool("").policy.on_crash, OnCrash::Fail);
    assert_eq!(tool("read_only = true").policy.on_crash, OnCrash::RunAgain);
    assert_eq!(tool("idempotent = true\non_crash = \"fail\"").policy.on_crash, OnCrash::Fail);
    assert_eq!(tool("task = \"never\"").policy.task, TaskMode::Never);
}

#[test]
fn mistake_in_file_is_reported_with_line() {
    for (text, line, says) in [
        ("", 1, "no tools"),
        ("[server]\nname = 3\n", 2, "`server.name` must be a string, but is the integer 3"),
        ("[tools.t]\ncommand = [\"c\"]\n", 1, "has no description"),
        ("[tools.t]\ndescription = \"d\"\n", 1, "has no command"),
        (
            "[tools.t]\ndescription = \"d\"\ncommand = [\"c\"]\ntimeout = \"soon\"\n",
            4,
            "a duration",
        ),
        (
            "[tools.t]\ndescription = \"d\"\ncommand = [\"c\"]\ntask = \"maybe\"\n",
            4,
            "`tools.t.task` must be \"never\" or \"auto\" or \"always\", but is the string \"maybe\"",
        ),
        ("[tools.t]\ndescription = \"d\"\ncommand = [\"c\"]\nmax_output = 3\n", 4, "a size"),
        (
            "[tools.t]\ndescription = \"d\"\ncommand = [\"c\"]\nmax_lines = 300000\n",
            4,
            "a task emits at most 99000",
        ),
        (
            "[tools.t]\ndescription = \"d\"\ncommand = [\"c\"]\nmax_lines = 34000\non_crash = \"rerun\"\n",
            4,
            "a task emits at most 33000",
        ),
        (
            "[tools.t]\ndescription = \"d\"\ncommand = [\"c\"]\ninteractive = true\ncontrol = \"stdout\"\nstdin = \"x\"\n",
            1,
            "needs for responses",
        ),
        (
            "[tools.t]\ndescription = \"d\"\ncommand = [\"c\"]\ncontrol = \"stdin\"\n",
            4,
            "must be \"fd\" or \"stdout\"",
        ),
        (
            "[tools.t]\ndescription = \"d\"\ncommand = [\"c\"]\n[tools.t.arguments.a]\ntype = \"text\"\n",
            5,
            "not an argument type",
        ),
        (
            "[tools.t]\ndescription = \"d\"\ncommand = [\"c\"]\n[tools.t.arguments.a]\ntype = \"string\"\nminimum = 1\n",
            6,
            "does not apply to this type",
        ),
        (
            "[tools.t]\ndescription = \"d\"\ncommand = [\"c\"]\n[tools.t.arguments.a]\ntype = \"integer\"\ndefault = \"1\"\n",
            6,
            "not of the argument's type",
        ),
        (
            "[tools.\"a b\"]\ndescription = \"d\"\ncommand = [\"c\"]\n",
            1,
            "not a valid name for a tool",
        ),
        (
            "[tools.t]\ndescription = \"d\"\ncomand = [\"c\"]\n",
            3,
            "unknown key `comand` in [tools.t]",
        ),
        ("[server]\nport = 1\n", 2, "unknown key `port` in [server]"),
        ("[auth]\nissuer = \"https://id\"\n", 1, "[auth] has no `resource`"),
        (
            "[auth]\nresource = \"https://a/mcp\"\nisuer = \"https://id\"\n",
            3,
            "unknown key `isuer`",
        ),
        (
            "[auth]\nresource = \"https://a/mcp\"\nissuer = \"https://id\"\nintrospection_url = \"https://id/i\"\n",
            4,
            "either by signature or by introspection",
        ),
        (
            "[server]\ntoken_file = \"t\"\n[auth]\nresource = \"https://a/mcp\"\nissuer = \"https://id\"\n",
            3,
            "cannot be combined with [auth]",
        ),
        (
            "[auth]\nresource = \"https://a/mcp\"\nissuer = \"https://id\"\ndpop = \"maybe\"\n",
            4,
            "`auth.dpop` must be \"allowed\" or \"required\", but is the string \"maybe\"",
        ),
        ("[auth]\nresource = \"https://a/mcp\"\n", 1, "[auth] has no `issuer`"),
        (
            "[auth]\nresource = \"https://a/mcp\"\n[auth.proxy]\nclient_id = \"x\"\n",
            3,
            "[auth.proxy] has no `provider`",
        ),
        (
            "[auth]\nresource = \"https://a/mcp\"\n[auth.proxy]\nprovider = \"https://id\"\ntoken_url = \"https://id/t\"\n",
            3,
            "either `provider` or all three URLs",
        ),
        (
            "[auth]\nresource = \"https://a/mcp\"\n[auth.proxy]\nprovider = \"https://id\"\nclient_id = \"x\"\nsigning_secret_env = \"S\"\n",
            3,
            "exactly one of `allow_users` and `allow_all_users`",
        ),
        (
            "[auth]\nresource = \"https://a/mcp\"\n[auth.issuers.two]\naudiences = [\"a\"]\n",
            3,
            "[auth.issuers.two] has no `issuer`",
        ),
        (
            "[auth]\nresource = \"https://a/mcp\"\nissuer = \"https://id\"\n[auth.issuers.two]\nissuer = \"https://id\"\n",
            1,
            "https://id is listed twice",
        ),
        (
            "[tools.t]\ndescription = \"d\"\ncommand = [\"c\"]\nscopes = [\n  \"a b\",\n]\n",
            5,
            "`a b` is not a valid scope",
        ),
        (
            "[tools.t]\ndescription = \"d\"\ncommand = [\"c\"]\nscopes = [\"a\"]\n",
            1,
            "the tool `t` requires scopes, but without [auth] no token has scopes",
        ),
        ("[server]\ntrusted_proxies = [\n  \"proxy\",\n]\n", 3, "is not an IP address"),
    ] {
        let problems = parse(text).expect_err("should be rejected").to_string();
        let start = format!("line {line}: ");
        let said = |problem: &str| problem.starts_with(&start) && problem.contains(says);
        assert!(problems.lines().any(said), "{says}: {problems}");
    }
}

#[test]
fn file_with_many_mistakes_reports_each_once() {
    let text = r#"[server]
listen = "localhost"
port = 1

[tasks]
store = "mysql://ada:hunter2@db/x"
max_running = 0

[tools.a]
description = "d"
comand = ["c", "{x}"]
max_output = "lots"
on_crash = "maybe"

[tools.b]
command = ["c", "{x}", "{y}"]
max_concurrent = 0
color = "red"

[tools.b.arguments]
x = { type = "text", minimum = 1 }

[elsewhere]
"#;
    let problems = parse(text).expect_err("should be rejected").to_string();
    let said: Vec<&str> = problems.lines().collect();
    assert_eq!(
        said,
        [
            "line 2: `server.listen` must be an address and a port such as \"127.0.0.1:8000\", but is the string \"localhost\"",
            "line 3: unknown key `port` in [server]",
            "line 6: `store` starts with the unknown scheme `mysql:`",
            "line 7: `tasks.max_running` must be an integer from 1 to 4294967295, but is the integer 0",
            "line 11: unknown key `comand` in [tools.a]",
            "line 12: `tools.a.max_output` must be a size such as \"64 KiB\" or \"10 MB\", but is the string \"lots\"",
            "line 13: `tools.a.on_crash` must be \"fail\" or \"rerun\", but is the string \"maybe\"",
            "line 15: the tool `b` has no description",
            "line 16: unknown argument `y`",
            "line 17: `tools.b.max_concurrent` must be an integer from 1 to 4294967295, but is the integer 0",
            "line 18: unknown key `color` in [tools.b]",
            "line 21: `text` is not an argument type",
            "line 23: unknown key `elsewhere` at the top level",
        ]
    );
}

/// Returns a tool with these additional keys and tables.
fn tool_with(keys: &str, tables: &str) -> String {
    format!(
        "[tools.t]\ndescription = \"d\"\ncommand = [\"c\", \"{{a}}\"]\n{keys}\n{tables}\n[tools.t.arguments.a]\n"
    )
}

#[test]
fn argument_default_violating_its_schema_is_rejected() {
    for argument in [
        "type = \"string\"\nenum = [\"a\", \"b\"]\ndefault = \"c\"",
        "type = \"integer\"\nmaximum = 3\ndefault = 4",
        "type = \"string\"\npattern = \"^[a-z]+$\"\ndefault = \"A\"",
        "type = \"array\"\nenum = [\"a\"]\ndefault = [\"b\"]",
        "type = \"array\"\nmax_items = 1\ndefault = [\"a\", \"b\"]",
        "type = \"string\"\nmin_length = 2\ndefault = \"a\"",
    ] {
        let text = tool_with("", "") + argument;
        let problems = parse(&text).expect_err(argument).to_string();
        let fits = problems.starts_with("line 9: the default is not a valid value");
        assert!(fits && problems.lines().count() == 1, "{argument}: {problems}");
    }
}

#[test]
fn invalid_pattern_is_rejected_with_line() {
    let text = tool_with("", "") + "type = \"string\"\npattern = \"([a-z\"\n";
    let problems = parse(&text).expect_err("should be rejected").to_string();
    let says = "line 8: `tools.t.arguments.a.pattern` must be a regular expression, but is the string \"([a-z\"";
    assert_eq!(problems, says);
    let text = tool_with("output_schema = { type = \"nothing\" }", "") + "type = \"string\"\n";
    let problems = parse(&text).expect_err("should be rejected").to_string();
    assert!(problems.starts_with("line 4: `output_schema`: "), "{problems}");
}

#[test]
fn contradictory_limits_are_rejected() {
    let argument = "type = \"string\"\n";
    for (keys, tables, argument, says) in [
        (
            "timeout = \"10s\"\ntask_after = \"20s\"",
            "",
            argument,
            "line 5: `task_after` is 20s, but `timeout` is only 10s",
        ),
        (
            "max_attempts = 5",
            "",
            argument,
            "line 4: `max_attempts` applies only to commands that are rerun",
        ),
        (
            "on_crash = \"fail\"\nread_only = true\nmax_attempts = 5",
            "",
            argument,
            "line 6: `max_attempts` applies only",
        ),
        (
            "",
            "[tasks]\nttl = \"2d\"\nmax_ttl = \"1d\"",
            argument,
            "line 6: `ttl` is 2d, but `max_ttl` is only 1d",
        ),
        (
            "",
            "",
            "type = \"integer\"\nminimum = 3\nmaximum = 2\n",
            "line 8: `minimum` is 3, but `maximum` is only 2",
        ),
        (
            "",
            "",
            "type = \"string\"\nmax_length = 2\nmin_length = 3\n",
            "line 9: `min_length` is 3",
        ),
        ("", "", "type = \"array\"\nmin_items = 3\nmax_items = 2\n", "line 8: `min_items` is 3"),
    ] {
        let text = tool_with(keys, tables) + argument;
        let problems = parse(&text).expect_err(says).to_string();
        assert!(problems.starts_with(says) && problems.lines().count() == 1, "{says}: {problems}");
    }
    // The default `ttl` must not exceed a written `max_ttl`.
    let text = tool_with(
        "timeout = \"1s\"\nidempotent = true\nmax_attempts = 5",
        "[tasks]\nmax_ttl = \"1h\"",
    );
    let config = parse(&(text + argument)).expect("is a file");
    assert_eq!(config.tasks.ttl, config.tasks.max_ttl);
}

#[test]
fn probable_mistakes_cause_warnings_only() {
    for (keys, tables, says) in [
        ("", "[tools.t.arguments.b]\ntype = \"string\"", "not use the argument `b`"),
        ("task = \"never\"\ntask_after = \"1s\"", "", "line 5: `task_after` has no effect"),
        ("read_only = true\ndestructive = true", "", "`t` is both `read_only` and `destructive`"),
    ] {
        let text = tool_with(keys, tables) + "type = \"string\"\n";
        let (_, warnings) = parse_noting(&text, &mut Asked::default()).expect("is a file");
        let [warning] = warnings.as_slice() else { panic!("{says}: {warnings:?}") };
        assert!(warning.to_string().contains(says), "{warning}");
    }
    let shell = "[tools.t]\ndescription = \"d\"\nshell = true\ncommand = \"echo \\\"${arg_a}\\\"\"\n[tools.t.arguments]\na = { type = \"string\" }\nb = { type = \"string\" }\n";
    let (_, warnings) = parse_noting(shell, &mut Asked::default()).expect("is a file");
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].to_string().starts_with("line 7: the command of `t` does not use"));
}

/// Returns a file with a tool that requires a scope, and a proxy with `more` from line 8 on.
fn behind_a_proxy(more: &str) -> String {
    format!(
        "[tools.t]\ndescription = \"d\"\ncommand = [\"c\"]\nscopes = [\"op\"]\n\
         [auth]\nresource = \"https://a/mcp\"\n[auth.proxy]\n\
         {more}\nprovider = \"https://id\"\nclient_id = \"x\"\nsigning_secret_env = \"S\"\nallow_all_users = true\n"
    )
}

#[test]
fn valid_grants_are_accepted() {
    for good in [
        "grants = { op = \"all\" }",
        "grants.op = { groups = [\"ops\"], hd = [\"example.com\"] }",
        "grants = { op = [{ groups = [\"ops\"] }, { email = [\"ann@example.com\"] }], more = \"all\" }",
    ] {
        parse(&behind_a_proxy(good)).unwrap_or_else(|problem| panic!("{problem}: {good}"));
    }
}

#[test]
fn mistake_in_grants_is_reported_with_line() {
    for (more, line, says) in [
        ("", 5, "the tool `t` requires the scope `op`, but no user can get it"),
        ("grants = { other = \"all\" }", 5, "the tool `t` requires the scope `op`"),
        ("grants = [\"op\"]", 8, "`auth.proxy.grants` must be a table, but is an array"),
        ("grants = { op = \"others\" }", 8, "`others` is not a valid rule for users"),
        ("grants.op = {}", 8, "the rule for the scope `op` matches no users"),
        ("grants.op = []", 8, "the rule for the scope `op` matches no users"),
        ("grants.op = { groups = [] }", 8, "the rule for the scope `op` matches no users"),
        ("grants.op = [\n  { groups = [\"ops\"] },\n  {},\n]", 10, "matches no users"),
        ("grants.op = { groups = \"ops\" }", 8, "`auth.proxy.grants.op.groups` must be an array"),
        ("grants.op = { groups = [1] }", 8, "must be a string, but is the integer 1"),
        ("grants.\"o p\" = \"all\"", 8, "`o p` is not a valid scope"),
    ] {
        let problem = parse(&behind_a_proxy(more)).expect_err("should be rejected").to_string();
        assert!(problem.starts_with(&format!("line {line}: ")), "{problem}: {more}");
        assert!(problem.contains(says), "{problem}: {more}");
    }
}

const PAGE: &str = include_str!("../../../../../docs/outlive-toml.md");

/// Returns the rows of the table under a heading: key and default.
fn rows(section: &str) -> Vec<(String, String)> {
    let row = |row: Vec<String>| (row[0].trim_matches('`').to_owned(), row[2].clone());
    cells(section).into_iter().map(row).collect()
}

/// Returns the rows of the table under a heading: key, type, default and description.
fn cells(section: &str) -> Vec<Vec<String>> {
    let heading = format!("\n## `[{section}]`\n");
    let (_, after) =
        PAGE.split_once(&heading).unwrap_or_else(|| panic!("the page has no [{section}]"));
    let body = after.split("\n## ").next().unwrap_or_default();
    let rows = body.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| row.split('|').skip(1).take(4).map(|cell| cell.trim().to_owned()).collect())
        .collect()
}

#[test]
fn docs_page_lists_exactly_the_known_keys() {
    let mut asked = Asked::default();
    parse_noting(DEMO, &mut asked).expect("is a file");
    for (section, keys) in asked.0.into_iter().filter(|(section, _)| !section.is_empty()) {
        let said: BTreeSet<String> = rows(section).into_iter().map(|(key, _)| key).collect();
        let known: BTreeSet<String> = keys.into_keys().map(str::to_owned).collect();
        assert_eq!(said, known, "keys on the page for [{section}], and keys of the reader");
    }
}

#[test]
fn docs_page_has_actual_defaults() {
    let Config { server, tasks, tools, console, .. } =
        parse("[tools.t]\ndescription = \"d\"\ncommand = [\"c\"]\n").expect("is a file");
    let tool = &tools[0];
    let TaskMode::Auto { after } = tool.policy.task else {
        panic!("calls become tasks by default")
    };
    for (section, key, default) in [
        ("server", "name", server.name.clone()),
        ("server", "version", server.version.clone()),
        ("server", "listen", server.listen.clone()),
        ("server", "allow_anonymous", server.allow_anonymous.to_string()),
        ("server", "max_waiting_jobs_per_caller", server.max_waiting_jobs_per_caller.to_string()),
        ("tasks", "ttl", in_words(tasks.ttl)),
        ("tasks", "max_ttl", in_words(tasks.max_ttl)),
        ("tasks", "poll_interval", in_words(tasks.poll_interval)),
        ("tasks", "max_tasks_per_caller", tasks.max_tasks_per_caller.to_string()),
        (
            "tasks",
            "max_store_bytes_per_caller",
            format!("{} MiB", tasks.max_store_bytes_per_caller >> 20),
        ),
        ("tasks", "max_audit_events", tasks.max_audit_events.to_string()),
        ("tasks", "max_anonymous_store", format!("{} MiB", tasks.max_anonymous_store >> 20)),
        ("tasks", "max_store", format!("{} MiB", tasks.max_store >> 20)),
        ("tasks", "max_running", tasks.max_running.to_string()),
        ("tasks", "replica_timeout", in_words(tasks.replica_timeout)),
        ("tasks", "promote_before_input", tasks.promote_before_input.to_string()),
        ("console", "path", console.path.clone()),
        ("console", "session_idle_timeout", in_words(console.session_idle_timeout)),
        ("console", "session_ttl", in_words(console.session_ttl)),
        ("tools.NAME", "timeout", in_words(tool.policy.timeout)),
        ("tools.NAME", "kill_grace", in_words(tool.kill_grace)),
        ("tools.NAME", "max_output", format!("{} MiB", tool.max_output >> 20)),
        ("tools.NAME", "max_lines", tool.max_lines.to_string()),
        ("tools.NAME", "max_concurrent", tool.concurrency.to_string()),
        ("tools.NAME", "task_after", in_words(after)),
        ("tools.NAME", "max_attempts", tool.policy.max_attempts.to_string()),
        ("tools.NAME", "always_listed", tool.policy.always_listed.to_string()),
        (
            "tools.NAME",
            "success_codes",
            format!("{:?}", tool.success_codes.iter().collect::<Vec<_>>()),
        ),
    ] {
        let said = rows(section).into_iter().find(|(known, _)| known == key);
        let (_, said) = said.unwrap_or_else(|| panic!("the page has no {key}"));
        assert_eq!(said, format!("`{default}`"), "[{section}] {key}");
    }
}

#[test]
fn docs_page_has_actual_limits_of_library() {
    let library = format!(
        "{:?} {:?}",
        outlive::server::http::HttpConfig::new(),
        outlive::server::Limits::default()
    );
    // A limit of the program, which the library does not have.
    let is_own = |key: &str| key == "max_waiting_jobs_per_caller";
    let is_limit =
        |key: &str| (key.starts_with("max_") || key.ends_with("_timeout")) && !is_own(key);
    let rows: Vec<_> = rows("server").into_iter().filter(|(key, _)| is_limit(key)).collect();
    assert_eq!(rows.len(), 15);
    for (key, said) in rows {
        let said = said.trim_matches('`');
        let bytes = |unit: &str, shift: u32| {
            said.strip_suffix(unit).map(|number| number.parse::<u64>().unwrap() << shift)
        };
        let amount = bytes(" MiB", 20).or_else(|| bytes(" KiB", 10));
        let said = amount.map_or(said.to_owned(), |amount| amount.to_string());
        assert!(library.contains(&format!(" {key}: {said},")), "{key}: {said}, in {library}");
    }
}

#[test]
fn docs_page_examples_are_valid() {
    let blocks = PAGE.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next());
    let mut count = 0;
    for block in blocks {
        parse(block).unwrap_or_else(|problem| panic!("{problem}:\n{block}"));
        count += 1;
    }
    assert!(count >= 3, "{count} examples");
}
