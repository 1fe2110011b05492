//! `[upstreams]`, their tools, and `[gateway]`.

use std::{path::Path, time::Duration};

use outlive_gateway::Upstream;

use super::{
    super::{CommandTarget, OnCrash, TaskMode, UpstreamConfig, UpstreamTarget, in_words},
    Asked, Config, parse, parse_noting, rows,
};
use crate::serve::Sources;

/// An upstream's exchange, and a server that knows its callers.
const EXCHANGE: &str = "auth = { kind = \"exchange\", token_url = \"https://id/token\", audience = \"a\", client_id = \"c\", client_secret_env = \"PATH\" }\n";
const AUTH: &str = "[auth]\nresource = \"https://a/mcp\"\nissuer = \"https://id\"\n";

const PROXY: &str = "[auth]\nresource = \"https://a/mcp\"\n[auth.proxy]\nprovider = \"https://id\"\nclient_id = \"c\"\nsigning_secret_env = \"PATH\"\nallow_all_users = true\n";

const COMMAND: &str = "[upstreams.a]\ncommand = [\"server\"]\n";

fn config(file: &str) -> Config {
    parse(file).unwrap_or_else(|problem| panic!("{problem}: {file}"))
}

/// Returns the only upstream of a file.
fn upstream(keys: &str) -> UpstreamConfig {
    config(&format!("{COMMAND}{keys}")).upstreams.remove(0)
}

#[test]
fn file_with_upstreams_needs_no_tools() {
    let config = config(&format!("{COMMAND}[upstreams.b]\nurl = \"https://example.com/mcp\"\n"));
    let names: Vec<&str> = config.upstreams.iter().map(|upstream| upstream.name.as_str()).collect();
    assert_eq!((names, config.tools.len()), (vec!["a", "b"], 0));
    assert_eq!(parse("").expect_err("no tools").to_string(), "line 1: the file has no tools");
}

#[test]
fn policy_of_tool_inherits_keys_of_upstream() {
    let upstream = upstream(
        "task_after = \"5s\"\ntimeout = \"6h\"\non_crash = \"rerun\"\nscopes = [\"x\"]\n\
         [upstreams.a.tools]\none = { timeout = \"7h\" }\ntwo = { task = \"auto\" }\nthree = { task = \"always\" }\n\
         [auth]\nresource = \"https://a/mcp\"\nissuer = \"https://id\"",
    );
    let after = Duration::from_secs(5);
    assert_eq!(upstream.policy.task_mode(), Some(TaskMode::Auto { after }));
    assert_eq!(upstream.policy.on_crash, Some(OnCrash::RunAgain));
    let modes: Vec<_> = upstream.tools.iter().map(|(_, tool)| tool.policy.task_mode()).collect();
    assert_eq!(modes, [None, Some(TaskMode::Auto { after }), Some(TaskMode::Always)]);
    let first = &upstream.tools[0].1.policy;
    assert_eq!((first.timeout, &first.scopes), (Some(Duration::from_secs(7 * 3_600)), &None));
}

#[test]
fn tags_of_upstream_tool_use_any_argument() {
    let upstream = upstream(
        "tools.pay.tags = { order = \"{order}-{{x}}\", all = \"{items}\", no = \"{none}\" }",
    );
    let arguments = r#"{"order": 7, "items": ["a", "b"], "more": true}"#.to_owned();
    let arguments = serde_json::value::RawValue::from_string(arguments).expect("is JSON");
    assert_eq!(upstream.tools[0].1.policy.tags.fill(&arguments), ["order=7-{x}", "all=a,b"]);
}

#[test]
fn mistake_in_upstream_is_reported_with_line_and_remedy() {
    let url = "[upstreams.a]\nurl = \"https://example.com/mcp\"\n";
    for (file, says) in [
        ("[upstreams.A]\ncommand = [\"c\"]", "line 1: `A` is not a valid name for an upstream"),
        ("[upstreams.a]\nprefix = \"b\"", "line 1: [upstreams.a] needs `command` or `url`"),
        ("[upstreams.a]\ncomand = [\"c\"]", "line 2: unknown key `comand` in [upstreams.a]"),
        (
            &format!("{COMMAND}url = \"https://a\""),
            "line 1: [upstreams.a] has both `command` and `url`",
        ),
        ("[upstreams.a]\ncommand = \"npx server\"", "line 2: `command` is a string, but must be"),
        ("[upstreams.a]\ncommand = []", "line 2: `command` is empty"),
        (&format!("{COMMAND}headers = {{ A = \"b\" }}"), "line 3: `headers` needs a `url`"),
        (&format!("{COMMAND}token_env = \"T\""), "line 3: `token_env` needs a `url`"),
        (&format!("{url}env = {{ A = \"b\" }}"), "line 3: `env` needs a `command`"),
        (&format!("{url}max_processes = 2"), "line 3: `max_processes` needs a `command`"),
        (
            "[upstreams.a]\nurl = \"http://example.com\"",
            "line 2: `http:` to another machine sends tokens",
        ),
        (
            "[upstreams.a]\nurl = \"example.com\"",
            "line 2: `example.com` is not the URL of a server",
        ),
        (
            &format!("{url}headers = {{ Mcp-Session-Id = \"x\" }}"),
            "line 3: `Mcp-Session-Id`: `Mcp-*` headers belong",
        ),
        (
            &format!("{url}headers = {{ \"a b\" = \"x\" }}"),
            "line 3: `a b` is not a valid name for a header",
        ),
        (
            &format!("{url}token_env = \"T\"\ntoken_file = \"t\""),
            "line 1: `token_env` and `token_file` are two tokens",
        ),
        (
            &format!("{url}token_env = \"T\"\nheaders.Authorization = \"x\""),
            "line 1: the upstream has both an `Authorization` header and a token",
        ),
        (&format!("{COMMAND}auth = {{ kind = \"login\" }}"), "line 3: `auth` needs a `url`"),
        (
            &format!("{url}auth = {{ kind = \"logn\" }}"),
            "line 3: `upstreams.a.auth.kind` must be \"login\"",
        ),
        (
            &format!("{url}auth = {{ scopes = [\"x\"] }}"),
            "line 3: [upstreams.a.auth] has no `kind`",
        ),
        (
            &format!("{url}token_env = \"T\"\nauth = {{ kind = \"login\" }}"),
            "line 4: the upstream has both `auth` and a token",
        ),
        (
            &format!("{url}auth = {{ kind = \"login\", client_key_file = \"k\" }}"),
            "line 3: `client_key_file` needs kind = \"client-credentials\" or \"exchange\"",
        ),
        (
            &format!("{url}auth = {{ kind = \"login\", client_secret_env = \"S\" }}"),
            "line 3: `client_secret_env` needs a `client_id`",
        ),
        (
            &format!("{url}auth = {{ kind = \"client-credentials\", client_secret_env = \"S\" }}"),
            "line 3: this kind of `auth` needs a `client_id`",
        ),
        (
            &format!("{url}auth = {{ kind = \"client-credentials\", client_id = \"c\" }}"),
            "line 3: this client needs `client_secret_env` or `client_key_file`",
        ),
        (
            &format!("{url}auth = {{ kind = \"login\", audience = \"a\" }}"),
            "line 3: `audience` needs kind = \"exchange\"",
        ),
        (
            &format!("{url}{EXCHANGE}"),
            "line 3: the exchange needs [auth]: without it, callers have no token to exchange",
        ),
        (
            &format!("{url}{}{AUTH}", EXCHANGE.replace(", audience = \"a\"", "")),
            "line 3: the exchange needs an `audience` or a `resource`",
        ),
        (
            &format!("{url}{}{AUTH}", EXCHANGE.replace("https:", "http:")),
            "line 3: `http:` to another machine sends tokens in clear text",
        ),
        (
            &format!("{url}{}{AUTH}", EXCHANGE.replace(" }", ", subject = \"provider\" }")),
            "line 3: `subject = \"provider\"` needs [auth.proxy]",
        ),
        (
            &format!("{url}auth = {{ kind = \"each-user\" }}\n{AUTH}"),
            "line 3: kind = \"each-user\" needs [auth.proxy]: without a browser login the server cannot",
        ),
        (
            &format!(
                "{url}auth = {{ kind = \"each-user\" }}\n{PROXY}[server]\npublic_url = \"https://b\"\n"
            ),
            "line 3: `public_url` of [server] is not the origin of `resource`",
        ),
        (
            &format!("{url}isolation = \"shared\"\n{EXCHANGE}{AUTH}"),
            "line 3: connections are `shared`, but `auth` has a token for each user",
        ),
        (
            &format!("{COMMAND}env.A = \"env:\""),
            "line 3: `env:` does not name an environment variable",
        ),
        (&format!("{COMMAND}prefix = \"a b\""), "line 3: `a b` is not a valid prefix"),
        (&format!("{COMMAND}only = []"), "line 3: `only` is empty"),
        (
            &format!("{COMMAND}hide = [\"*********\"]"),
            "line 3: the pattern `*********` has more than 8 `*`",
        ),
        (
            &format!("{COMMAND}protocol_version = \"2020-01-01\""),
            "line 3: `upstreams.a.protocol_version` must be \"auto\" or",
        ),
        (
            &format!("{COMMAND}isolation = \"none\""),
            "line 3: `upstreams.a.isolation` must be \"principal\" or",
        ),
        (
            &format!("{COMMAND}scopes = [\"x\"]"),
            "line 1: the upstream `a` requires scopes, but without [auth]",
        ),
        (
            &format!("{COMMAND}on_crash = \"fail\"\nmax_attempts = 3"),
            "line 4: `max_attempts` applies only to calls that are rerun",
        ),
        (
            &format!("{COMMAND}start = \"now\""),
            "line 3: `upstreams.a.start` must be \"first-use\" or",
        ),
        (
            &format!("{COMMAND}approve = \"caller\""),
            "line 3: unknown key `approve` in [upstreams.a]",
        ),
        (
            &format!("{COMMAND}on_crash = \"fail\"\ntools.t.max_attempts = 3"),
            "line 4: `max_attempts` applies only to calls that are rerun",
        ),
        (
            &format!("{COMMAND}tools.t.name = \"call_tool\""),
            "line 3: `call_tool` is the name of a tool that Outlive adds",
        ),
        (
            &format!("{COMMAND}tools.t.name = \"x\"\ntools.u.name = \"x\""),
            "line 4: `t` and `u` have the same `name`",
        ),
        (
            &format!("{COMMAND}timeout = \"1m\"\ntools.t.task_after = \"2m\""),
            "line 4: `task_after` is 2m, but `timeout` is only 1m",
        ),
        (
            &format!("{COMMAND}[gateway]\ndiscover = \"list\""),
            "line 4: unknown key `discover` in [gateway]",
        ),
        (
            "[upstreams.a]\ncommand = [\"c\"]\nprefix = \"\"\n[upstreams.b]\ncommand = [\"c\"]\nprefix = \"\"",
            "line 4: the upstreams `a` and `b` have the prefix \"\"",
        ),
    ] {
        let problems = parse(file).expect_err(says);
        assert!(problems.to_string().starts_with(says), "{says}: {problems}");
        let has_remedy = |problem: &super::super::reader::Problem| problem.remedy.is_some();
        let unfit = says.contains(" must be ");
        assert!(unfit || problems.0.iter().all(has_remedy), "{says} has no remedy");
    }
}

#[test]
fn file_with_many_mistakes_in_upstreams_reports_each() {
    let file = "[upstreams.a]\ncommand = [\"c\"]\nlog = \"loud\"\nmax_tools = 0\ntools.t.tmeout = \"1s\"\n\
                [upstreams.b]\nurl = \"ftp://x\"\nca_fle = \"x\"\n";
    let problems = parse(file).expect_err("should be rejected").to_string();
    let lines: Vec<&str> = problems.lines().map(|line| &line[..6]).collect();
    assert_eq!(lines, ["line 3", "line 4", "line 5", "line 7", "line 8"], "{problems}");
}

#[test]
fn gateway_section_without_upstreams_causes_warning() {
    let file = "[tools.t]\ndescription = \"d\"\ncommand = [\"c\"]\n[gateway]\nlist_wait = \"1s\"\n";
    let (_, warnings) = parse_noting(file, &mut Asked::default()).expect("is a file");
    assert!(warnings[0].to_string().contains("line 4: [gateway] has no effect"), "{warnings:?}");
}

#[test]
fn notification_may_name_tool_of_upstream() {
    let receiver = "[notify.n]\ncommand = [\"c\"]\ntools = [\"a__x\"]\n";
    config(&format!("{COMMAND}{receiver}"));
    config(&format!("{COMMAND}prefix = \"\"\n{}", receiver.replace("a__x", "anything")));
    let problems =
        parse(&format!("{COMMAND}{}", receiver.replace("a__x", "b__x"))).expect_err("unknown");
    assert!(problems.to_string().contains("the file has no tool `b__x`"), "{problems}");
}

#[test]
fn settings_that_the_file_accepts_are_accepted_by_the_gateway() {
    let file = "[upstreams.a]\ncommand = [\"c\"]\nworking_dir = \"/\"\nenv = { A = \"b\" }\npass_env = [\"PATH\"]\n\
        inherit_env = false\nmax_processes = 2\nprotocol_version = \"2025-06-18\"\nprefix = \"p\"\nonly = [\"x*\"]\n\
        hide = [\"y?\"]\nisolation = \"session\"\nstart = \"at-start\"\nstart_timeout = \"1s\"\nidle_stop = \"2s\"\nmax_concurrent = 3\n\
        input = \"never\"\npin = \"deny\"\nmax_result = \"1 MiB\"\nmax_tools = 9\ninstructions = false\nlog = \"debug\"\ntask = \"always\"\n\
        timeout = \"3s\"\non_crash = \"rerun\"\nmax_attempts = 2\nalways_listed = true\n\
        [upstreams.a.tools.t]\nname = \"n\"\ndescription = \"d\"\nhide = false\nread_only = true\ndestructive = false\n\
        idempotent = true\nmax_result = \"2 MiB\"\neager = true\nrepeat = \"new\"\nmax_inline = \"3 KiB\"\nanswers = [\"tool\"]\n\
        approve = { by = \"caller\", when = { env = [\"prod\"] } }\ntags = { a = \"{a}\" }\n\
        [upstreams.b]\nurl = \"http://example.com\"\nallow_http = true\nheaders = { X-A = \"b\" }\ntoken_file = \"t\"\nca_file = \"c\"\n\
        [upstreams.c]\nurl = \"https://example.com\"\nauth = { kind = \"login\", scopes = [\"s\"], client_id = \"c\", client_secret_env = \"PATH\" }\n\
        [upstreams.d]\nurl = \"https://example.com\"\nauth = { kind = \"client-credentials\", client_id = \"c\", client_secret_env = \"PATH\" }\n\
        [upstreams.e]\nurl = \"https://example.com\"\nauth = { kind = \"exchange\", token_url = \"https://id/token\", resource = \"https://a\", \
        subject = \"principal\", client_id = \"c\", client_secret_env = \"PATH\" }\n\
        [upstreams.f]\nurl = \"https://example.com\"\nauth = { kind = \"each-user\", scopes = [\"s\"], client_id = \"c\" }\n\
        [auth]\nresource = \"https://a/mcp\"\n[auth.proxy]\nprovider = \"https://id\"\nclient_id = \"c\"\n\
        signing_secret_env = \"PATH\"\nallow_all_users = true\n\
        [gateway]\ndiscovery = \"search\"\nsearch_results = 2\nlist_wait = \"1s\"\nmax_processes = 3\nreport_problems = false\naudit = \"store\"\n";
    let config = config(file);
    let mut gateway = outlive_gateway::Gateway::builder().settings(config.gateway.clone());
    let upstreams: Vec<Upstream> =
        Sources::new(Some(Path::new("/outlive.toml"))).upstreams(&config);
    for upstream in upstreams {
        gateway = gateway.upstream(upstream);
    }
    gateway.build().expect("the gateway accepts the settings");
}

#[test]
fn upstream_without_keys_has_defaults_of_page() {
    let plain = UpstreamConfig::new(
        "a".to_owned(),
        UpstreamTarget::Command(CommandTarget {
            words: vec!["server".to_owned()],
            ..CommandTarget::default()
        }),
    );
    assert_eq!(upstream(""), plain);
    let library = format!("{:?}", outlive_gateway::GatewaySettings::new());
    for (key, shown) in [
        ("discovery", "List".to_owned()),
        ("search_results", "5".to_owned()),
        ("list_wait", in_words(Duration::from_secs(5))),
        ("max_processes", "64".to_owned()),
        ("report_problems", "true".to_owned()),
        ("audit", "Off".to_owned()),
    ] {
        assert!(library.contains(&format!("{key}: {shown}")), "{key}: {library}");
        let row = rows("gateway").into_iter().find(|(known, _)| known == key);
        assert_eq!(row, Some((key.to_owned(), format!("`{}`", shown.to_lowercase()))));
    }
}
