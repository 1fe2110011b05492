//! The first protocol version of every member and content type: earlier versions do not get it.

use outlive::{
    server::{
        CallToolResult, ContentBlock, Cx, Json, Meta, Prompt, Resource, ResourceTemplate, Server,
        ServerBuilder, Tool,
    },
    wire::{
        self, Annotations, Icon, PromptArgument, PromptMessage, ResourceContents, Role,
        ToolAnnotations,
    },
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use crate::support::pipe::{MODERN, Pipe, REVISIONS};

const FIRST: &str = "2024-11-05";
const MARCH: &str = "2025-03-26";
const JUNE: &str = "2025-06-18";
const NOVEMBER: &str = "2025-11-25";

fn icon() -> Icon {
    Icon::new("https://example.com/i.png")
}

fn meta() -> Meta {
    Meta::default().with("com.example/k", 1)
}

fn annotations() -> Annotations {
    Annotations::new()
        .with_audience([Role::User])
        .with_priority(1.0)
        .with_last_modified("2026-01-02T03:04:05Z")
}

fn link() -> wire::Resource {
    wire::Resource::new("mem://a", "a")
        .with_title("A")
        .with_icons([icon()])
        .with_annotations(annotations())
        .with_meta(meta())
}

#[derive(Serialize, JsonSchema)]
struct Sum {
    sum: u8,
}

/// A server that uses every member.
fn builder() -> ServerBuilder {
    let contents = || ResourceContents::text("mem://a", "a").with_meta(meta());
    let blocks = move || {
        std::future::ready(CallToolResult::new([
            ContentBlock::text("t").with_annotations(annotations()).with_meta(meta()),
            ContentBlock::image_base64("AA==", "image/png")
                .with_annotations(annotations())
                .with_meta(meta()),
            ContentBlock::audio_base64("AA==", "audio/wav")
                .with_annotations(annotations())
                .with_meta(meta()),
            ContentBlock::resource_link(link()),
            ContentBlock::Resource(contents().into())
                .with_annotations(annotations())
                .with_meta(meta()),
        ]))
    };
    let messages = || {
        std::future::ready(vec![
            PromptMessage::user(ContentBlock::audio_base64("AA==", "audio/wav")),
            PromptMessage::user(ContentBlock::resource_link(link())),
            PromptMessage::user(ContentBlock::text("t").with_meta(meta())),
        ])
    };
    Server::builder("test", "1")
        .title("Test")
        .description("Tests.")
        .website_url("https://example.com")
        .icon(icon())
        .tool(
            Tool::new("sum", async || Json(Sum { sum: 2 }))
                .title("Sum")
                .annotations(ToolAnnotations::new().with_title("Sum").with_read_only(true))
                .icon(icon())
                .meta(meta()),
        )
        .tool(Tool::new("blocks", blocks))
        .tool(Tool::new("progress", async |cx: Cx| {
            cx.progress(1.0, 2.0, "half");
            "done"
        }))
        .resource(
            Resource::new("mem://a", "a", move || std::future::ready(contents()))
                .title("A")
                .size(1)
                .annotations(annotations())
                .icon(icon())
                .meta(meta()),
        )
        .resource_template(
            ResourceTemplate::new("mem://{x}/y", "x", async || "x")
                .title("X")
                .annotations(annotations())
                .icon(icon())
                .meta(meta()),
        )
        .prompt(
            Prompt::new("p", messages)
                .title("P")
                .icon(icon())
                .meta(meta())
                .argument(PromptArgument::new("a").with_title("A")),
        )
}

/// Returns the result of a request in each version.
async fn results(method: &str, params: Value) -> Vec<(&'static str, Value)> {
    let server = builder().build().unwrap();
    let mut results = Vec::new();
    for version in REVISIONS {
        let mut pipe = Pipe::open(&server);
        let result = match (method, version) {
            ("initialize", MODERN) => pipe.result("server/discover", json!({})).await,
            ("initialize", _) => pipe.legacy(version).await,
            _ => {
                let mut pipe = Pipe::speaking(&server, version).await;
                pipe.result(method, params.clone()).await
            }
        };
        results.push((version, result));
    }
    results
}

/// Asserts that a member exists from version `first` on, and not before.
#[track_caller]
fn since(results: &[(&str, Value)], first: &str, pointer: &str) {
    for (version, result) in results {
        let found = result.pointer(pointer).is_some();
        assert_eq!(found, *version >= first, "{version}: {pointer} in {result}");
    }
}

// ICON-01, ICON-06, COMPL-01, VER-23
#[tokio::test(start_paused = true)]
async fn server_info_has_members_of_the_version() {
    let mut results = results("initialize", json!({})).await;
    since(&results, FIRST, "/capabilities/tools");
    since(&results, MARCH, "/capabilities/completions");
    let modern = &mut results[4].1;
    modern["serverInfo"] = modern["_meta"]["io.modelcontextprotocol/serverInfo"].clone();
    since(&results, FIRST, "/serverInfo/version");
    since(&results, JUNE, "/serverInfo/title");
    since(&results, NOVEMBER, "/serverInfo/description");
    since(&results, NOVEMBER, "/serverInfo/websiteUrl");
    since(&results, NOVEMBER, "/serverInfo/icons/0/src");
}

// TOOL-05, TOOL-07, TOOL-30, ICON-01, ICON-07, VER-23
#[tokio::test(start_paused = true)]
async fn tools_have_members_of_the_version() {
    let results = results("tools/list", json!({})).await;
    since(&results, FIRST, "/tools/0/inputSchema");
    since(&results, MARCH, "/tools/0/annotations/readOnlyHint");
    since(&results, JUNE, "/tools/0/title");
    since(&results, JUNE, "/tools/0/outputSchema");
    since(&results, JUNE, "/tools/0/_meta");
    since(&results, NOVEMBER, "/tools/0/icons");
    since(&results, "never", "/tools/0/execution");
}

// RES-02, RES-14, ICON-01, ICON-07
#[tokio::test(start_paused = true)]
async fn resources_and_templates_have_members_of_the_version() {
    for (method, entry) in
        [("resources/list", "/resources/0"), ("resources/templates/list", "/resourceTemplates/0")]
    {
        let results = results(method, json!({})).await;
        let at = |member: &str| format!("{entry}/{member}");
        since(&results, FIRST, &at("annotations/audience"));
        since(&results, JUNE, &at("annotations/lastModified"));
        since(&results, JUNE, &at("title"));
        since(&results, JUNE, &at("_meta"));
        since(&results, NOVEMBER, &at("icons"));
    }
    let results = results("resources/read", json!({"uri": "mem://a"})).await;
    since(&results, FIRST, "/contents/0/text");
    since(&results, JUNE, "/contents/0/_meta");
}

// PROMPT-02, PROMPT-09, ICON-01, ICON-07
#[tokio::test(start_paused = true)]
async fn prompts_have_members_of_the_version() {
    let listed = results("prompts/list", json!({})).await;
    since(&listed, FIRST, "/prompts/0/arguments/0/name");
    since(&listed, JUNE, "/prompts/0/title");
    since(&listed, JUNE, "/prompts/0/arguments/0/title");
    since(&listed, JUNE, "/prompts/0/_meta");
    since(&listed, NOVEMBER, "/prompts/0/icons");
    for (version, result) in results("prompts/get", json!({"name": "p"})).await {
        let content = |at: usize| &result["messages"][at]["content"];
        assert_eq!(
            content(0)["type"],
            if version >= MARCH { "audio" } else { "text" },
            "{version}"
        );
        assert_eq!(
            content(1)["type"],
            if version >= JUNE { "resource_link" } else { "text" },
            "{version}"
        );
        assert_eq!(content(2).get("_meta").is_some(), version >= JUNE, "{version}");
    }
}

// TOOL-26, TOOL-27, ICON-07, VER-23
#[tokio::test(start_paused = true)]
async fn content_unsupported_by_version_becomes_text() {
    let results = results("tools/call", json!({"name": "blocks"})).await;
    for at in 0..5 {
        since(&results, JUNE, &format!("/content/{at}/_meta"));
        since(&results, JUNE, &format!("/content/{at}/annotations/lastModified"));
    }
    for at in [0, 1, 4] {
        since(&results, FIRST, &format!("/content/{at}/annotations/priority"));
    }
    since(&results, FIRST, "/content/1/data");
    since(&results, MARCH, "/content/2/data");
    since(&results, JUNE, "/content/3/title");
    since(&results, NOVEMBER, "/content/3/icons");
    since(&results, FIRST, "/content/4/resource/uri");
    since(&results, JUNE, "/content/4/resource/_meta");
    // A block that a version lacks becomes text; no block is lost.
    for (version, result) in &results {
        let types: Vec<_> = result["content"]
            .as_array()
            .unwrap()
            .iter()
            .map(|block| block["type"].as_str().unwrap())
            .collect();
        let audio = if *version >= MARCH { "audio" } else { "text" };
        let link = if *version >= JUNE { "resource_link" } else { "text" };
        assert_eq!(types, ["text", "image", audio, link, "resource"], "{version}");
    }
    let text = |at: usize| results[0].1["content"][at]["text"].as_str().unwrap();
    assert!(text(2).contains("audio/wav"), "{}", text(2));
    assert_eq!(text(3), "a: mem://a");
}

// TOOL-17
#[tokio::test(start_paused = true)]
async fn structured_content_is_sent_from_2025_06_18() {
    let results = results("tools/call", json!({"name": "sum"})).await;
    since(&results, JUNE, "/structuredContent/sum");
    since(&results, FIRST, "/content/0/text");
}

// PROG-02
#[tokio::test(start_paused = true)]
async fn progress_message_is_sent_from_2025_03_26() {
    for version in REVISIONS {
        let mut pipe = Pipe::speaking(&builder().build().unwrap(), version).await;
        let id = pipe
            .send("tools/call", json!({"name": "progress", "_meta": {"progressToken": 1}}))
            .await;
        let params = pipe.read_to(id).await[0]["params"].clone();
        assert_eq!(params["progress"], 1, "{version}");
        assert_eq!(params["total"], 2, "{version}");
        assert_eq!(params.get("message").is_some(), version >= MARCH, "{version}");
    }
}

// RPC-09, VER-37
#[tokio::test(start_paused = true)]
async fn modern_members_are_sent_only_from_2026_07_28() {
    let results = results("tools/list", json!({})).await;
    since(&results, MODERN, "/resultType");
    since(&results, MODERN, "/ttlMs");
    since(&results, MODERN, "/cacheScope");
    since(&results, MODERN, "/_meta/io.modelcontextprotocol~1serverInfo");
}
