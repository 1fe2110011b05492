//! Connections of relayed requests: processes, sessions, lists and the state of a connection.

use std::time::Duration;

use outlive::{
    client::{
        relay::{
            CapabilityClass, ErrorCategory, ListKind, ParamHeaders, RelayEvent, RelayOutcome,
            RelayRequest, input_channel,
        },
        transport::ChildProcess,
    },
    wire::Version,
};
use serde_json::{Value, json, value::to_raw_value};

use super::super::{
    kit::{EVERYWHERE, Place, builder, server},
    script::{HttpScript, discovered, empty, initialized, line, ok, pipe, with_status},
};

/// A modern server that responds to one call, and exits at the next.
#[cfg(unix)]
const SCRIPT: &str = r#"
id() { echo "$1" | sed 's/.*"id":\([0-9]*\),.*/\1/'; }
read -r line
echo '{"jsonrpc":"2.0","id":'$(id "$line")',"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{}}}'
read -r line
echo '{"jsonrpc":"2.0","id":'$(id "$line")',"result":{"content":[],"env":"'$SECRET-$GIVEN'"}}'
read -r line
exit 7
"#;

#[cfg(unix)]
#[tokio::test]
async fn process_that_exits_is_reported_and_not_started_again() {
    let program = ChildProcess::new("/bin/sh")
        .args(["-c", SCRIPT])
        .inherit_env(false)
        .env("PATH", "/usr/bin:/bin")
        .env("GIVEN", "given")
        .process_group(true);
    let client = builder().reconnect(false).connect(program).await.unwrap();
    let state = client.connection().await.unwrap();
    assert!(state.is_open && state.process_id.is_some() && !state.has_session);
    assert_eq!(state.protocol_version, Version::V2026_07_28);
    let call = RelayRequest::new("tools/call");
    let mut exchange = client.relay(&call).await.unwrap();
    let RelayEvent::Outcome(RelayOutcome::Complete(result)) = exchange.next().await.unwrap() else {
        panic!("no result")
    };
    let result: Value = serde_json::from_slice(&result).unwrap();
    assert_eq!(result["env"], "-given");
    let mut exchange = client.relay(&call).await.unwrap();
    let error = exchange.next().await.unwrap_err();
    assert!(error.may_have_executed() && error.category() == ErrorCategory::Exited, "{error}");
    assert_eq!(client.closed().await.unwrap().code(), Some(7));
    assert!(!client.connection().await.unwrap().is_open);
    let error = client.relay(&call).await.unwrap_err();
    assert!(!error.may_have_executed() && error.category() == ErrorCategory::Exited, "{error}");
}

#[cfg(unix)]
#[tokio::test]
async fn process_group_ends_with_its_leader() {
    // The leader exits at the end of its input, its child does not.
    let script = format!("sleep 1000 & echo $! >&2; {SCRIPT}");
    let (sender, lines) = std::sync::mpsc::channel();
    let program = ChildProcess::new("sh")
        .args(["-c", &script])
        .process_group(true)
        .on_stderr(move |line| sender.send(line.to_owned()).unwrap_or_default());
    let client = builder().connect(program).await.unwrap();
    let child = lines.recv_timeout(Duration::from_secs(5)).unwrap();
    client.close().await;
    for _ in 0..500 {
        let runs = std::process::Command::new("kill").args(["-0", &child]).output().unwrap();
        let is_zombie = std::fs::read_to_string(format!("/proc/{child}/stat"))
            .is_ok_and(|stat| stat.contains(") Z "));
        if !runs.status.success() || is_zombie {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("process {child} still runs")
}

#[tokio::test]
async fn forgotten_session_gets_new_handshake_at_most_twice() {
    for lost in [1, 2, 3] {
        let script = HttpScript::new(move |seen, count| async move {
            match (seen.verb.as_str(), seen.method()) {
                ("POST", "initialize") => {
                    let body = json!({"jsonrpc": "2.0", "id": seen.id(), "result": initialized("2025-11-25")});
                    with_status(200, &format!("mcp-session-id: s{count}\r\n"), &body)
                }
                ("POST", "tools/call") if count <= lost => empty(404),
                ("POST", "tools/call") => ok(&seen, &json!({"content": []})),
                ("POST", _) => empty(202),
                _ => empty(405),
            }
        })
        .await;
        let client = builder()
            .protocol_version(Version::V2025_11_25)
            .reconnect(false)
            .connect(script.url.as_str())
            .await
            .unwrap();
        let call = RelayRequest::new("tools/call").params(&[r#""name":"t""#]);
        let event = client.relay(&call).await.unwrap().next().await;
        assert_eq!(event.is_ok(), lost < 3, "{event:?}");
        let calls = script.all("tools/call");
        assert_eq!(calls.len(), if lost < 3 { lost + 1 } else { 3 });
        let sessions: Vec<_> = calls.iter().map(|call| call.header("mcp-session-id")).collect();
        assert_eq!(sessions[..2], [Some("s1"), Some("s2")]);
        if let Err(error) = event {
            assert!(!error.may_have_executed(), "{error}");
        }
    }
}

#[tokio::test]
async fn rejected_token_and_forbidden_principal_have_their_categories() {
    for (status, category) in [
        (401, ErrorCategory::NeedsLogin),
        (403, ErrorCategory::Refused),
        (429, ErrorCategory::RateLimited),
        (502, ErrorCategory::Unreachable),
    ] {
        let script = HttpScript::new(move |seen, _| async move {
            match seen.method() {
                "server/discover" => ok(&seen, &discovered()),
                _ => empty(status),
            }
        })
        .await;
        let client = builder().connect(script.url.as_str()).await.unwrap();
        let error = client.relay(&RelayRequest::new("tools/call")).await.unwrap_err();
        assert_eq!(error.category(), category, "{error}");
    }
    let error = builder().connect("http://127.0.0.1:9/mcp").await.unwrap_err();
    assert_eq!(error.category(), ErrorCategory::Unreachable, "{error}");
    let error = builder().connect(ChildProcess::new("/no/such/program")).await.unwrap_err();
    assert_eq!(error.category(), ErrorCategory::Exited, "{error}");
}

#[tokio::test]
async fn list_entries_are_verbatim_in_every_version() {
    for (wire, version) in EVERYWHERE {
        let place = Place::of(&server(), wire).await;
        let client = place.connect(builder(), version).await;
        for kind in [ListKind::Tools, ListKind::Prompts, ListKind::Resources] {
            let mut pages = client.relay_list(kind, CapabilityClass::NONE);
            let page = pages.next().await.unwrap().unwrap();
            assert!(
                page.items.iter().all(|item| item.get().starts_with(r#"{"name":"#)
                    || item.get().starts_with(r#"{"uri":"#)),
                "{page:?}"
            );
            assert!(!page.items.is_empty() && page.result.starts_with(b"{"));
            assert!(pages.next().await.is_none(), "{wire:?} {version:?}");
        }
    }
}

#[tokio::test]
async fn list_follows_cursors_and_rejects_loop() {
    for loops in [false, true] {
        let mut pages = 0;
        let (target, seen) = pipe(move |request| match request["method"].as_str() {
            Some("server/discover") => vec![line(request, &discovered())],
            _ => {
                pages += 1;
                let mut page = json!({"tools": [{"name": format!("t{pages}"), "x-new": {"b": 1, "a": 2}}], "ttlMs": 1500});
                if loops || pages < 3 {
                    page["nextCursor"] =
                        if loops { "same".into() } else { format!("\"{pages}").into() };
                }
                vec![line(request, &page)]
            }
        });
        let client = builder().connect(target).await.unwrap();
        let mut pages = client.relay_list(ListKind::Tools, CapabilityClass::ROOTS);
        let mut read = Vec::new();
        let mut failed = false;
        while let Some(page) = pages.next().await {
            match page {
                Ok(page) => {
                    assert_eq!(page.ttl_ms, Some(1500));
                    read.extend(page.items.into_iter().map(|item| item.get().to_owned()));
                }
                Err(error) => {
                    failed = true;
                    assert!(error.to_string().contains("cursor"), "{error}");
                }
            }
        }
        assert_eq!(failed, loops);
        assert_eq!(read[0], r#"{"name":"t1","x-new":{"b":1,"a":2}}"#);
        let seen = seen.lock().unwrap();
        assert!(seen[1].contains(r#"clientCapabilities":{"roots":{}}"#), "{}", seen[1]);
        if !loops {
            assert!(read.len() == 3 && seen[2].contains(r#""cursor":"\"1""#), "{}", seen[2]);
        }
    }
    // A server without the capability is not asked.
    let (target, seen) = pipe(|request| vec![line(request, &discovered())]);
    let client = builder().connect(target).await.unwrap();
    let mut pages = client.relay_list(ListKind::ResourceTemplates, CapabilityClass::NONE);
    assert!(pages.next().await.is_none());
    assert_eq!(seen.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn legacy_resource_subscription_is_sent_and_others_are_refused() {
    let (target, seen) = pipe(|request| match request["method"].as_str() {
        Some("initialize") => {
            let mut hello = initialized("2025-06-18");
            hello["capabilities"] = json!({"resources": {"subscribe": true}});
            vec![line(request, &hello)]
        }
        Some(_) if request["id"].is_u64() => vec![line(request, &json!({}))],
        _ => Vec::new(),
    });
    let (sender, _inputs) = input_channel(1);
    let builder = builder().input_channel(sender).protocol_version(Version::V2025_06_18);
    let client = builder.connect(target).await.unwrap();
    client.subscribe_resource("file:///a").await.unwrap();
    client.unsubscribe_resource("file:///a").await.unwrap();
    client.ping().await.unwrap();
    let seen = seen.lock().unwrap().clone();
    let last: Vec<_> = seen[2..].iter().map(|line| line.contains("file:///a")).collect();
    assert_eq!(last, [true, true, false]);
    let place = Place::of(&server(), super::super::kit::Wire::Memory).await;
    let modern = place.connect(super::super::kit::builder(), None).await;
    assert!(modern.subscribe_resource("file:///a").await.is_err());
}

#[test]
fn param_headers_repeat_annotated_arguments() {
    let schema = json!({"type": "object", "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "count": {"type": "integer"},
    }});
    let headers = ParamHeaders::read(&to_raw_value(&schema).unwrap()).unwrap();
    let values = headers.values(r#"{"region":"eu","count":1}"#);
    assert_eq!(values, [("Region".to_owned(), "eu".to_owned())]);
    let none = ParamHeaders::read(&to_raw_value(&json!({"type": "object"})).unwrap()).unwrap();
    assert!(none.is_empty() && none.values("{}").is_empty());
}
