//! What a server has.

use serde_json::json;

use super::stage::{Outlive, Stage, program};

#[test]
fn a_page_has_tools_with_their_arguments() {
    let (outlive, stage) = (Outlive::new(), Stage::start(&[]));
    let command = format!("'{}' --stdio", program());
    for server in [&stage.url, &command] {
        let page = outlive.run(&["inspect", server]).out;
        for part in [
            "stage 1.0.0\n",
            "revision      2026-07-28\n",
            "io.modelcontextprotocol/tasks",
            "Everything that can happen to a call.",
            "Tools (9)\n",
            "  add  read-only\n      Adds two numbers.\n    * a  integer\n    * b  integer\n      returns {sum}\n",
            "size    one of small, large",
        ] {
            assert!(page.contains(part), "{part:?} is missing:\n{page}");
        }
        assert!(!page.contains('\u{1b}'), "no colours in a pipe");
    }
}

#[test]
fn json_has_everything_as_the_server_said_it() {
    let (outlive, stage) = (Outlive::new(), Stage::start(&[]));
    let found = outlive.json(&["inspect", &stage.url, "--json", "--all-versions"]);
    assert_eq!(found["server"]["name"], "stage");
    assert_eq!(found["tools"][0]["inputSchema"]["required"], json!(["a", "b"]));
    let all = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];
    assert_eq!(found["speaks"], json!(all));
    let older = outlive.json(&["inspect", &stage.url, "--json", "--version", "2025-11-25"]);
    assert_eq!(older["version"], "2025-11-25");
    assert!(older["capabilities"]["tasks"].is_object());
}
