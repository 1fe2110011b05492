//! `outlive inspect`.

use std::fs;

use serde_json::json;

use super::stage::{Outlive, Stage, example, program};

#[test]
fn inspect_page_has_tools_with_arguments() {
    let (outlive, stage) = (Outlive::new(), Stage::start(&[]));
    let command = format!("'{}' --stdio", program());
    for server in [&stage.url, &command] {
        let page = outlive.run(&["inspect", server]).out;
        for part in [
            "stage 1.0.0\n",
            "protocol version  2026-07-28\n",
            "io.modelcontextprotocol/tasks",
            "A tool for every situation of a call.",
            "Tools (10)\n",
            "  add  read-only\n      Adds two numbers.\n    * a  integer\n    * b  integer\n      returns {sum}\n",
            "size    one of small, large",
        ] {
            assert!(page.contains(part), "{part:?} is missing:\n{page}");
        }
        assert!(!page.contains('\u{1b}'), "no colors in a pipe");
    }
}

#[test]
fn inspect_with_failed_lists_shows_the_others() {
    let outlive = Outlive::new();
    let server = |how: &str| format!("'{}' {how}", example("hostile"));
    let page = outlive.run(&["inspect", &server("--broken")]);
    assert_eq!(page.code, 0, "{page:?}");
    for part in ["<tool-name>", "Failed lists (2)\n  resources: ", "  prompts: ", "<broken>"] {
        assert!(page.out.contains(part), "{part:?} is missing:\n{}", page.out);
    }
    let found = outlive.json(&["inspect", "--json", &server("--broken")]);
    assert!(found["failed"]["prompts"].as_str().unwrap().contains("-32603"), "{found}");
    assert!(!found["tools"].as_array().unwrap().is_empty());
    let nothing = outlive.run(&["inspect", &server("--broken-all")]);
    assert!(nothing.code == 1 && nothing.out.is_empty(), "{nothing:?}");
}

#[test]
fn inspect_json_has_complete_server_data() {
    let (outlive, stage) = (Outlive::new(), Stage::start(&[]));
    let found = outlive.json(&["inspect", &stage.url, "--json", "--all-protocol-versions"]);
    assert_eq!(found["server"]["name"], "stage");
    assert_eq!(found["tools"][0]["inputSchema"]["required"], json!(["a", "b"]));
    let all = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];
    assert_eq!(found["speaks"], json!(all));
    let older =
        outlive.json(&["inspect", &stage.url, "--json", "--protocol-version", "2025-11-25"]);
    assert_eq!(older["version"], "2025-11-25");
    assert!(older["capabilities"]["tasks"].is_object());
}

/// A server of the legacy era that logs the methods of its requests.
const OLDER: &str = r#"
import json, sys
results = {"initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
    "serverInfo": {"name": "old", "version": "1"}}, "tools/list": {"tools": []}}
with open(sys.argv[1], "a") as log:
    for line in sys.stdin:
        message = json.loads(line)
        print(message["method"], file=log, flush=True)
        if "id" not in message:
            continue
        answer = {"jsonrpc": "2.0", "id": message["id"]}
        if message["method"] in results:
            answer["result"] = results[message["method"]]
        else:
            answer["error"] = {"code": -32602, "message": "Invalid request parameters"}
        print(json.dumps(answer), flush=True)
"#;

#[test]
fn legacy_server_is_probed_once() {
    let outlive = Outlive::new();
    let (script, log) = (outlive.folder.file("old.py"), outlive.folder.file("log"));
    fs::write(&script, OLDER).unwrap();
    let server = format!("python3 '{script}' '{log}'");
    let unknown = || fs::read_to_string(&log).unwrap().matches("server/discover").count();
    for _ in 0..3 {
        let found = outlive.json(&["inspect", "--json", &server]);
        assert_eq!(found["version"], "2025-06-18", "{found}");
        assert_eq!(unknown(), 1);
    }
    // A client with a fixed version does not probe either.
    let other = Outlive::new();
    let pinned = other.run(&["inspect", "--protocol-version", "2025-06-18", &server]);
    assert!(pinned.code == 0 && unknown() == 1, "{pinned:?}");
    // A connection with a fixed version must not update the cache.
    let stage = Stage::start(&[]);
    other.run(&["inspect", "--protocol-version", "2025-11-25", &stage.url]);
    other.run(&["inspect", "--all-protocol-versions", &stage.url]);
    let found = other.json(&["inspect", "--json", &stage.url]);
    assert_eq!(found["version"], "2026-07-28", "{found}");
}
