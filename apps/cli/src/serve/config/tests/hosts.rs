//! `[hosts]`, `[results]`, and the keys of tools for clients without tasks.

use outlive::server::hosts::{AnswerBy, Hosts, RESERVED_TOOL_NAMES, Results};

use super::{super::hosts::HostsConfig, Config, parse, rows};

const TOOL: &str = "[tools.t]\ndescription = \"d\"\ncommand = [\"c\"]\n";

fn config(file: &str) -> Config {
    parse(&format!("{file}\n{TOOL}")).unwrap_or_else(|problem| panic!("{problem}: {file}"))
}

#[test]
fn calls_are_bridged_with_defaults_of_library_unless_turned_off() {
    let known = format!("{:?}", Hosts::known());
    assert_eq!(format!("{:?}", config("").hosts.hosts.expect("is on")), known);
    assert_eq!(format!("{:?}", config("[hosts]").hosts.hosts.expect("is on")), known);
    assert!(config("[hosts]\nfallback = false").hosts.hosts.is_none());
    assert_eq!(config("").results, Results::by_host());
}

#[test]
fn keys_of_hosts_are_applied() {
    let file = "[hosts]\ncall_timeout = \"31s\"\nmax_rounds = 7\nmax_wait = \"32m\"\nrepeat = \"new\"\n\
         abandon_timeout = \"33m\"\nanswers = [\"tool\", \"link\"]\nview = false\nlearn = false\n\
         [hosts.known.\"Acme-*\"]\ncall_timeout = \"34s\"\nprogress = \"extends\"\nresult_tokens = 8000\n\
         [hosts.known.patient]\ncall_timeout = \"none\"\nprogress = \"no\"\nresult_tokens = \"all\"\n";
    let HostsConfig { hosts, answers, .. } = config(file).hosts;
    assert_eq!(answers, [AnswerBy::Tool, AnswerBy::Link]);
    let shown = format!("{:?}", hosts.expect("is on"));
    for set in [
        "call_timeout: Some(31s)",
        "max_rounds: 7",
        "max_wait: 1920s",
        "repeat: New",
        "abandon_timeout: Some(1980s)",
        "answers: [Tool, Link]",
        "view: false",
        "learn: false",
        "(\"Acme-*\", Host { call_timeout: Some(Some(34s)), progress_extends: Some(true), result_tokens: Some(Some(8000))",
        "(\"patient\", Host { call_timeout: Some(None), progress_extends: Some(false), result_tokens: Some(None)",
    ] {
        assert!(shown.contains(set), "{set} in {shown}");
    }
}

#[test]
fn results_are_limited_by_host_or_bytes_or_not() {
    for (inline, results) in [
        ("host", Results::by_host()),
        ("all", Results::all()),
        ("64 KiB", Results::bytes(64 << 10)),
    ] {
        assert_eq!(config(&format!("[results]\ninline = \"{inline}\"")).results, results);
    }
}

#[test]
fn mistake_in_hosts_is_reported_with_line_and_remedy() {
    let link = "answers = [\"link\"]\n[server]\nlisten = \"0.0.0.0:1\"\n";
    for (file, says) in [
        (
            "[hosts]\ncall_timeout = \"2s\"",
            "line 2: `hosts.call_timeout` must be at least \"3s\", or \"none\"",
        ),
        ("[hosts]\ncall_timeout = 30", "line 2: `hosts.call_timeout` must be a duration"),
        (
            "[hosts]\nmax_rounds = 11",
            "line 2: `max_rounds` is 11, but clients follow at most 10 rounds",
        ),
        ("[hosts]\nrepeat = \"twice\"", "line 2: `hosts.repeat` must be \"join\" or \"new\""),
        (
            "[hosts]\nanswers = [\"mail\"]",
            "line 2: `hosts.answers` must be \"link\" or \"tool\", but is the string",
        ),
        ("[hosts]\nlimit = \"3s\"", "line 2: unknown key `limit` in [hosts]"),
        ("[hosts.known.\"a*b\"]", "line 1: `a*b` is not a valid name of a client"),
        (
            "[hosts.known.a]\nprogress = true",
            "line 2: `hosts.known.a.progress` must be \"extends\" or \"no\"",
        ),
        (
            "[hosts.known.a]\nresult_tokens = 0",
            "line 2: `hosts.known.a.result_tokens` must be a number of tokens",
        ),
        ("[hosts.known.a]\nresults = 1", "line 2: unknown key `results` in [hosts.known.a]"),
        ("[results]\ninline = 64", "line 2: `results.inline` must be \"host\", \"all\" or a size"),
        (&format!("[hosts]\n{link}"), "line 1: `answers` has \"link\", but links need the address"),
    ] {
        let problems = parse(&format!("{file}\n{TOOL}")).expect_err(says);
        assert!(problems.to_string().starts_with(says), "{says}: {problems}");
    }
}

#[test]
fn tool_keys_for_clients_without_tasks_are_checked() {
    let link = "answers = [\"link\"]";
    for good in
        ["repeat = \"new\"\nmax_inline = \"200 KiB\"", link, "destructive = true\nanswers = []"]
    {
        parse(&format!("{TOOL}{good}\n")).unwrap_or_else(|problem| panic!("{problem}: {good}"));
    }
    let destructive = format!("destructive = true\n{link}");
    for (keys, says) in [
        (destructive.as_str(), "line 5: the tool is `destructive`, so `answers` must be empty"),
        ("max_inline = 7", "line 4: `tools.t.max_inline` must be a size"),
        ("repeat = true", "line 4: `tools.t.repeat` must be \"join\" or \"new\""),
    ] {
        let problems = parse(&format!("{TOOL}{keys}\n")).expect_err(says);
        assert!(problems.to_string().starts_with(says), "{says}: {problems}");
    }
}

#[test]
fn tool_with_reserved_name_is_rejected() {
    for name in RESERVED_TOOL_NAMES {
        let problems = parse(&TOOL.replace("tools.t", &format!("tools.{name}"))).expect_err(name);
        let says = format!("line 1: `{name}` is the name of a tool that Outlive adds");
        assert_eq!(problems.to_string(), says);
    }
}

#[test]
fn docs_page_has_actual_defaults_of_hosts() {
    let library = format!("{:?}", Hosts::known());
    for (key, said, shown) in [
        ("call_timeout", "60s", "call_timeout: Some(60s)"),
        ("max_rounds", "8", "max_rounds: 8"),
        ("max_wait", "30m", "max_wait: 1800s"),
        ("repeat", "join", "repeat: Join"),
        ("abandon_timeout", "15m", "abandon_timeout: None"),
        ("view", "true", "view: true"),
        ("learn", "true", "learn: true"),
    ] {
        assert!(library.contains(shown), "{shown} in {library}");
        let row = rows("hosts").into_iter().find(|(known, _)| known == key);
        assert_eq!(row, Some((key.to_owned(), format!("`{said}`"))));
    }
    let state_ttl = outlive::server::Limits::default().request_state_ttl;
    assert_eq!(state_ttl.as_secs(), 15 * 60, "the default of `abandon_timeout`");
}
