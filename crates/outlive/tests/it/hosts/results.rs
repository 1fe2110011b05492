//! Results above the limit of the host: the server cuts them, and clients read the rest.

use std::{sync::LazyLock, time::Duration};

use outlive::{
    server::{
        Args, Principal, Server, Tool,
        hosts::Hosts,
        tasks::{TaskConfig, TaskPolicy},
    },
    wire::{CallToolResult, ContentBlock},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json, value::to_raw_value};

use super::world::{hosts, task_of};
use crate::support::pipe::{Pipe, text};

/// Limit of a host without a row: 20,000 tokens of two bytes.
const LIMIT: usize = 40_000;

#[derive(Deserialize, JsonSchema)]
struct Wanted {
    kind: String,
    ms: u64,
}

/// 5 MB.
static LOG: LazyLock<String> = LazyLock::new(|| log(135_000));

/// 400 KB.
static SHORT_LOG: LazyLock<String> = LazyLock::new(|| log(10_000));

fn log(lines: usize) -> String {
    let lines = (1..=lines).map(|line| format!("{line:06} a line of the log, with an ü\n"));
    lines.collect::<String>() + "ERROR: the last line"
}

async fn report(Args(wanted): Args<Wanted>) -> CallToolResult {
    tokio::time::sleep(Duration::from_millis(wanted.ms)).await;
    let rows: Vec<_> = (0..60_000).map(|row| json!({"row": row, "text": "of a table"})).collect();
    let rows = json!({ "rows": rows });
    match wanted.kind.as_str() {
        "log" => CallToolResult::text(LOG.as_str()),
        "short log" => CallToolResult::text(SHORT_LOG.as_str()),
        "lines" => CallToolResult::new(SHORT_LOG.lines().map(ContentBlock::text)),
        "json" => CallToolResult::text(rows.to_string()),
        "base64" => CallToolResult::text("QUJD".repeat(1_300_000)),
        "images" => {
            let image = |byte| ContentBlock::image(vec![byte; 1_700_000], "image/png");
            CallToolResult::new([image(1), image(2), image(3)])
        }
        "structured" => {
            let structured = to_raw_value(&rows).unwrap();
            CallToolResult::text("60000 rows").with_structured_content(structured)
        }
        _ => CallToolResult::text("small"),
    }
}

fn server(config: TaskConfig) -> Server {
    let auto = TaskPolicy::Auto { after: Duration::from_millis(250) };
    Server::builder("reports", "1")
        .tasks(config)
        .tool(Tool::new("report", report).task(auto))
        .tool(Tool::new("plain", report))
        .build()
        .unwrap()
}

fn bridging(hosts: Hosts) -> Server {
    server(TaskConfig::in_memory().hosts(hosts))
}

fn links(result: &Value) -> Vec<&str> {
    let blocks = result["content"].as_array().unwrap().iter();
    let links = blocks.filter(|block| block["type"] == "resource_link");
    links.map(|link| link["uri"].as_str().unwrap()).collect()
}

/// Bytes of all texts of a result.
fn bytes(result: &Value) -> usize {
    let blocks = result["content"].as_array().unwrap().iter();
    blocks.filter_map(|block| block["text"].as_str()).map(str::len).sum()
}

async fn read(pipe: &mut Pipe, uri: &str) -> Value {
    pipe.result("resources/read", json!({ "uri": uri })).await["contents"][0].clone()
}

#[tokio::test(start_paused = true)]
async fn results_of_5_mb_are_cut_and_read_in_ranges() {
    let server = bridging(hosts());
    let mut pipe = Pipe::speaking(&server, "2025-11-25").await;
    let kinds = ["log", "json", "base64", "images", "structured"];
    for (tool, ms, kinds) in [("plain", 0, &kinds[..]), ("report", 1_000, &kinds[3..])] {
        for kind in kinds.iter().copied() {
            let result = pipe.call(tool, json!({"kind": kind, "ms": ms})).await;
            assert!(result["isError"].is_null(), "{tool} {kind}");
            assert!(bytes(&result) <= LIMIT, "{tool} {kind}: {} bytes", bytes(&result));
            if kind == "structured" {
                let cut = &result["structuredContent"]["cut"];
                let uri = cut["uri"].as_str().unwrap();
                let row = read(&mut pipe, &format!("{uri}?at=/rows/59999/row")).await;
                assert_eq!(row["text"], "59999");
                continue;
            }
            let links = links(&result);
            assert_eq!(links.len(), if kind == "images" { 3 } else { 1 }, "{tool} {kind}");
            let part = read(&mut pipe, &format!("{}?from=1000000&bytes=65536", links[0])).await;
            let range = &part["_meta"]["dev.outlive/range"];
            assert!(
                range["from"].as_u64().is_some_and(|from| (999_997..=1_000_000).contains(&from))
            );
            let text = part["text"].as_str().or(part["blob"].as_str()).unwrap();
            assert!((65_530..=87_390).contains(&text.len()), "{kind}: {}", text.len());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn model_reads_on_with_task_result() {
    let mut pipe = Pipe::speaking(&bridging(hosts()), "2025-11-25").await;
    let pending = pipe.call("report", json!({"kind": "lines", "ms": 5_000})).await;
    let task = task_of(&pending);
    let result = pipe.call("task_result", json!({ "task": task })).await;
    let cut = text(&result);
    assert!(cut.ends_with("ERROR: the last line"));
    let (start, notice) = cut.split_once("\n[").unwrap();
    let from = start.len() + 1;
    assert!(notice.contains(&format!("{{\"task\":\"{task}\",\"from\":{from}}}")), "{notice}");
    let next = pipe.call("task_result", json!({"task": task, "from": from})).await;
    let log = SHORT_LOG.as_str();
    let (part, more) = text(&next).rsplit_once("\n[").unwrap();
    assert!(log[from..].starts_with(part) && more.contains("continue with task_result"), "{more}");
    let found = pipe.call("task_result", json!({"task": task, "find": "ERROR"})).await;
    assert_eq!(
        text(&found),
        "1 lines contain `ERROR`, with their numbers:\n10001: ERROR: the last line\n"
    );
    let beyond = pipe.call("task_result", json!({"task": task, "from": log.len()})).await;
    assert_eq!(beyond["isError"], true, "{beyond}");
    assert!(text(&beyond).contains("but the result has"), "{beyond}");
}

#[tokio::test(start_paused = true)]
async fn result_of_another_principal_is_an_unknown_resource() {
    let server = bridging(hosts());
    let mut alice = Pipe::speaking_as(&server, "2025-11-25", Principal::named("alice")).await;
    let mut bob = Pipe::speaking_as(&server, "2025-11-25", Principal::named("bob")).await;
    let result = alice.call("plain", json!({"kind": "short log", "ms": 0})).await;
    let uri = links(&result)[0].to_owned();
    let foreign = bob.error("resources/read", json!({ "uri": uri })).await;
    let made_up = uri.replace(|digit: char| digit.is_ascii_digit(), "0");
    for unknown in [made_up.as_str(), "outlive://results/x/0", "outlive://results/", "other://x"] {
        let error = bob.error("resources/read", json!({ "uri": unknown })).await;
        assert_eq!(error["code"], foreign["code"], "{unknown}");
        let same = error["message"].as_str().unwrap().replace(unknown, &uri);
        assert_eq!(same, foreign["message"], "{unknown}");
    }
    let beyond =
        alice.error("resources/read", json!({"uri": format!("{uri}?from=99999999")})).await;
    assert_eq!(beyond["code"], -32602, "{beyond}");
    assert!(beyond["message"].as_str().unwrap().contains("`from` is 99999999, but the block has"));
}

#[tokio::test(start_paused = true)]
async fn template_is_listed_for_clients_without_tasks_only() {
    let server = bridging(hosts());
    let templates = |list: &Value| list["resourceTemplates"].as_array().map(Vec::len);
    let mut pipe = Pipe::open(&server);
    let identity = pipe.legacy("2025-11-25").await;
    assert!(identity["capabilities"]["resources"].is_object(), "{identity}");
    let list = pipe.result("resources/templates/list", json!({})).await;
    let expected = "outlive://results/{task}/{block}{?from,bytes,line,lines,at}";
    assert_eq!(list["resourceTemplates"][0]["uriTemplate"], expected, "{list}");
    assert_eq!(pipe.result("resources/list", json!({})).await["resources"], json!([]));
    let mut declares = Pipe::open(&server);
    let identity = declares.legacy_with("2025-11-25", json!({"tasks": {}})).await;
    assert!(identity["capabilities"]["resources"].is_null(), "{identity}");
    assert_eq!(declares.error("resources/templates/list", json!({})).await["code"], -32601);
    let mut modern = Pipe::open(&server);
    let list = modern.modern("resources/templates/list", json!({})).await;
    assert_eq!(templates(&list["result"]), Some(1), "{list}");
}

#[tokio::test(start_paused = true)]
async fn protocol_version_without_links_gets_the_uri_as_text() {
    let mut pipe = Pipe::speaking(&bridging(hosts()), "2025-03-26").await;
    let result = pipe.call("plain", json!({"kind": "short log", "ms": 0})).await;
    let link = result["content"][1]["text"].as_str().unwrap();
    assert!(link.starts_with("result of plain: outlive://results/"), "{link}");
}

#[tokio::test(start_paused = true)]
async fn client_with_tasks_gets_a_large_result_whole() {
    let server = bridging(hosts());
    let tasks = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    let mut pipe = Pipe::open(&server);
    for kind in ["short log", "lines", "structured"] {
        let call = json!({"name": "report", "arguments": {"kind": kind, "ms": 1_000}});
        let made = pipe.modern_with(tasks.clone(), "tools/call", call).await;
        let id = made["result"]["taskId"].as_str().unwrap_or_else(|| panic!("{made}")).to_owned();
        tokio::time::sleep(Duration::from_secs(2)).await;
        let got = pipe.modern_with(tasks.clone(), "tasks/get", json!({ "taskId": id })).await;
        let wanted = Wanted { kind: kind.to_owned(), ms: 0 };
        let expected = serde_json::to_value(report(Args(wanted)).await).unwrap();
        let result = &got["result"]["result"];
        assert!(result["content"] == expected["content"], "{kind}");
        assert!(result["structuredContent"] == expected["structuredContent"], "{kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn result_without_stored_bytes_is_shortened_and_names_the_limit() {
    let config = TaskConfig::in_memory().max_store_bytes_per_caller(300 << 10).hosts(hosts());
    let user = Principal::named("ada");
    let mut pipe = Pipe::speaking_as(&server(config), "2025-11-25", user).await;
    for (tool, ms) in [("plain", 0), ("report", 1_000)] {
        let result = pipe.call(tool, json!({"kind": "short log", "ms": ms})).await;
        assert!(result["isError"].is_null(), "{tool}");
        let cut = text(&result);
        assert!(
            cut.starts_with("000001 a line") && cut.ends_with("ERROR: the last line"),
            "{tool}"
        );
        assert!(cut.contains("`max_store_bytes_per_caller` is used up"), "{tool}: {cut}");
        assert!(links(&result).is_empty(), "{tool}");
    }
}

#[tokio::test(start_paused = true)]
async fn delivered_results_are_deleted_first_when_bytes_are_used_up() {
    let config = TaskConfig::in_memory().max_store_bytes_per_caller(1_200 << 10).hosts(hosts());
    let user = Principal::named("ada");
    let mut pipe = Pipe::speaking_as(&server(config), "2025-11-25", user).await;
    let mut uris = Vec::new();
    for round in 0..6 {
        let tool = if round % 2 == 0 { "plain" } else { "report" };
        let result = pipe.call(tool, json!({"kind": "short log", "ms": round % 2 * 1_000})).await;
        assert_eq!(links(&result).len(), 1, "result {round} is stored");
        uris.push(links(&result)[0].to_owned());
    }
    let oldest = pipe.ask("resources/read", json!({ "uri": format!("{}?bytes=9", uris[0]) })).await;
    assert!(oldest["error"].is_object(), "{oldest}");
    let newest = read(&mut pipe, &format!("{}?bytes=9", uris[5])).await;
    assert_eq!(newest["text"], "000001 a ");
}

#[tokio::test(start_paused = true)]
async fn anonymous_callers_keep_their_results_when_bytes_are_used_up() {
    for (tool, ms) in [("plain", 0), ("report", 1_000)] {
        let config = TaskConfig::in_memory()
            .max_store_bytes_per_caller(1_000 << 10)
            .max_anonymous_store(1_000 << 10);
        let server = server(config.hosts(hosts()));
        let mut pipe = Pipe::speaking_as(&server, "2025-11-25", Principal::ANONYMOUS).await;
        let mut stored = Vec::new();
        for _ in 0..5 {
            let result = pipe.call(tool, json!({"kind": "short log", "ms": ms})).await;
            stored.extend(links(&result).into_iter().map(str::to_owned));
        }
        assert!(matches!(stored.len(), 2..=3), "{tool}: {} are stored", stored.len());
        let first = read(&mut pipe, &format!("{}?bytes=9", stored[0])).await;
        assert_eq!(first["text"], "000001 a ", "{tool}");
    }
}
