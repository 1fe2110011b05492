//! `[console]`, `approve`, `[approvals]` and `tags`.

use serde_json::value::RawValue;

use super::{Config, PAGE, cells, parse};

const TOOL: &str = "[tools.deploy]\ndescription = \"d\"\ncommand = [\"c\", \"--\", \"{version}\", \"{env}\"]\n\
                    arguments = { version = { type = \"string\" }, env = { type = \"string\", enum = [\"test\", \"prod\"] } }\n";

fn config(keys: &str) -> Config {
    parse(&format!("{TOOL}{keys}")).unwrap_or_else(|problem| panic!("{problem}: {keys}"))
}

/// Returns the rule of the tool, as the library shows it.
fn rule(keys: &str) -> String {
    let config = config(keys);
    format!("{:?}", config.tools[0].policy.approve.as_ref().expect("a rule").rule())
}

#[test]
fn every_form_of_approve_is_a_rule_of_the_library() {
    use outlive::server::approve::Approve;
    let shown = |approve: Approve| format!("{approve:?}");
    assert_eq!(rule("approve = \"caller\""), shown(Approve::caller()));
    assert_eq!(rule("approve = [\"ada\"]"), shown(Approve::by(["ada"])));
    assert_eq!(rule("approve = { scope = \"ops\" }"), shown(Approve::scope("ops")));
    assert_eq!(rule("approve = { by = \"caller\", message = \"Sure?\" }"), {
        shown(Approve::caller().message("Sure?"))
    });
    let whole = "approve = { by = [\"ada\", \"ben\"], scope = \"ops\", count = 2, when = { env = [\"prod\"] }, \
                 decision_timeout = \"8h\", start_timeout = \"1m\", denial_ttl = \"2m\", max_open = 3, \
                 links = true, not_caller = true }";
    let seconds = std::time::Duration::from_secs;
    let expected = Approve::by(["ada", "ben"])
        .or_scope("ops")
        .count(2)
        .when_argument("env", ["prod"])
        .decision_timeout(seconds(8 * 3_600))
        .start_timeout(seconds(60))
        .denial_ttl(seconds(120))
        .max_open(3)
        .links(true);
    assert_eq!(rule(whole), shown(expected));
}

#[test]
fn docs_page_has_actual_defaults_of_approve() {
    let library = rule("approve = [\"ada\"]");
    let cells = cells("tools.NAME.approve");
    let default = |key: &str| {
        let row = cells.iter().find(|row| row[0] == format!("`{key}`"));
        row.unwrap_or_else(|| panic!("the page has no {key}"))[2].trim_matches('`').to_owned()
    };
    for (key, shown) in [
        ("decision_timeout", "86400s"),
        ("start_timeout", "600s"),
        ("denial_ttl", "600s"),
        ("max_open", "20"),
        ("count", "1"),
        ("links", "false"),
    ] {
        assert!(library.contains(&format!("{key}: {shown}")), "{key} in {library}");
        let said = default(key);
        let said = super::super::units::span(&said).map_or(said, |span| format!("{span:?}"));
        assert_eq!(said, shown, "{key}");
    }
    assert!(PAGE.contains("approve = \"caller\""));
}

#[test]
fn mistake_in_approve_is_reported_with_line() {
    for (keys, says) in [
        ("approve = \"ada\"", "`tools.deploy.approve` must be \"caller\" or an array of names"),
        ("approve = []", "must be \"caller\" or an array of names"),
        ("approve = {}", "the rule does not name the people who decide"),
        (
            "approve = { by = [\"ada\"], cuont = 2 }",
            "unknown key `cuont` in [tools.deploy.approve]",
        ),
        (
            "approve = { by = [\"ada\", \"ada\"], count = 2 }",
            "`count` is 2, but `by` names 1 people",
        ),
        ("approve = { by = \"caller\", count = 2 }", "the caller alone decides"),
        ("approve = { by = \"caller\", scope = \"x\" }", "`scope` has no effect"),
        ("approve = { by = \"caller\", links = true }", "`links` are for named people or a scope"),
        (
            "approve = { scope = \"x\", count = 2, links = true }",
            "a link for a scope names no person",
        ),
        ("approve = { by = [\"ada\"], not_caller = false }", "the vote of the caller never counts"),
        (
            "approve = { by = [\"ada\"], when = { evn = [\"prod\"] } }",
            "a condition on the argument `evn`, which does not exist",
        ),
        ("approve = { by = [\"ada\"], when = { env = \"prod\" } }", "must be an array of values"),
        ("approve = { by = [\"ada\"], when = { env = [] } }", "lists no value of `env`"),
        ("approve = { by = [\"ada\"], when = { env = [\"prd\"] } }", "`env` is never \"prd\""),
    ] {
        let problems = parse(&format!("{TOOL}{keys}\n")).expect_err(keys).to_string();
        assert!(problems.contains("line 5: ") && problems.contains(says), "{keys}: {problems}");
    }
}

#[test]
fn links_of_people_need_the_address_of_the_server() {
    let keys = "approve = { by = [\"ada\"], links = true }\n";
    assert!(config(keys).has_answer_page());
    let public = "[server]\nlisten = \"0.0.0.0:1\"\nallow_anonymous = true\n";
    let problems = parse(&format!("{TOOL}{keys}{public}")).unwrap_err().to_string();
    assert!(problems.contains("`approve` of the tool `deploy` has `links`"), "{problems}");
}

#[test]
fn rule_of_destructive_tools_has_no_conditions() {
    let config = config("[approvals]\ndestructive = { by = [\"ada\"] }\n");
    assert_eq!(config.approval_rules().len(), 1);
    let keys = "[approvals]\ndestructive = { by = [\"ada\"], when = { env = [\"prod\"] } }\n";
    let problems = parse(&format!("{TOOL}{keys}")).unwrap_err().to_string();
    assert!(problems.contains("line 6: `when` names arguments of one tool"), "{problems}");
}

#[test]
fn console_is_on_by_default_only_on_this_machine() {
    for (keys, expected) in [
        ("", true),
        ("[console]\nenabled = false\n", false),
        ("[server]\nlisten = \"0.0.0.0:1\"\n", false),
        ("[server]\nlisten = \"0.0.0.0:1\"\n[console]\n", true),
        ("[server]\nlisten = \"0.0.0.0:1\"\n[console]\nenabled = false\n", false),
    ] {
        assert_eq!(config(keys).has_console(), expected, "{keys}");
    }
}

#[test]
fn mistake_in_console_is_reported_with_line() {
    for (keys, says) in [
        ("path = \"console\"", "line 6: `console.path` must be a path such as \"/console\""),
        ("path = \"/mcp/x\"", "line 6: `console.path` must be a path"),
        ("operator_scope = \"ops\"", "line 5: `operator_scope` is set, but without [auth]"),
        ("client_id = \"c\"", "line 6: `client_id` is for logins with OAuth"),
        ("client_secret_env = \"S\"", "line 6: `client_secret_env` has no effect"),
        ("contents = \"all\"", "line 6: `console.contents` must be \"operators\" or \"owners\""),
    ] {
        let problems = parse(&format!("{TOOL}[console]\n{keys}\n")).expect_err(keys).to_string();
        assert!(problems.contains(says), "{keys}: {problems}");
    }
}

#[test]
fn tags_and_command_words_are_made_of_arguments() {
    let config = config("tags = { version = \"v{version}\", env = \"{env}\" }\n");
    let raw = |json: &str| RawValue::from_string(json.to_owned()).expect("is JSON");
    let tool = &config.tools[0];
    let call = raw("{\"version\":\"1.4.2\",\"env\":\"prod\"}");
    assert_eq!(tool.policy.tags.fill(&call), ["version=v1.4.2", "env=prod"]);
    assert_eq!(tool.policy.tags.fill(&raw("{\"version\":\"2\"}")), ["version=v2"]);
    assert_eq!(tool.words(&call).expect("words"), ["c", "--", "1.4.2", "prod"]);
    for (keys, says) in [
        ("tags = { v = \"{verison}\" }", "unknown argument `verison`"),
        ("tags = { \"a=b\" = \"x\" }", "`a=b` is not a valid name for a tag"),
        (
            "tags = { a = \"\", b = \"\", c = \"\", d = \"\", e = \"\", f = \"\", g = \"\", h = \"\", i = \"\" }",
            "a task has at most 8 tags",
        ),
    ] {
        let problems = parse(&format!("{TOOL}{keys}\n")).expect_err(keys).to_string();
        assert!(problems.contains(says), "{keys}: {problems}");
    }
}

#[test]
fn definition_changes_with_the_command_and_not_with_other_keys() {
    let of = |keys: &str| config(keys).tools[0].definition();
    let base = of("");
    assert_eq!(base, of("timeout = \"9s\"\n"));
    for keys in ["env = { A = \"b\" }\n", "stdin = \"x\"\n", "working_dir = \"x\"\n"] {
        assert_ne!(base, of(keys), "{keys}");
    }
    let moved = parse(&format!("\n\n{TOOL}")).expect("is a file");
    assert_eq!(base, moved.tools[0].definition(), "lines are not part of the definition");
}
