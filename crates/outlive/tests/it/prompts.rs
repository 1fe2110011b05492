//! Prompt arguments and messages.

use outlive::{
    server::{Args, ContentBlock, Cx, Error, Prompt, Server},
    wire::{self, GetPromptResult, PromptArgument, PromptMessage},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::pipe::{MODERN, Pipe, REVISIONS};

#[derive(Deserialize, JsonSchema)]
struct Review {
    /// The file to review.
    file: String,
    /// The maximum number of remarks.
    limit: Option<u8>,
    #[serde(default)]
    strict: bool,
    tone: Option<Tone>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Tone {
    Kind,
    Dry,
}

async fn review(Args(review): Args<Review>) -> String {
    format!("{} {:?} {} {:?}", review.file, review.limit, review.strict, review.tone)
}

fn server(prompt: Prompt) -> Server {
    Server::builder("test", "1").prompt(prompt).build().unwrap()
}

// PROMPT-01, PROMPT-02
#[tokio::test(start_paused = true)]
async fn prompt_arguments_are_fields_of_its_type() {
    let mut pipe = Pipe::open(&server(
        Prompt::new("review", review).description("Reviews a file.").title("Review"),
    ));
    let result = pipe.result("prompts/list", json!({})).await;
    let expected = json!([{
        "name": "review",
        "title": "Review",
        "description": "Reviews a file.",
        "arguments": [
            {"name": "file", "description": "The file to review.", "required": true},
            {"name": "limit", "description": "The maximum number of remarks.", "required": false},
            {"name": "strict", "required": false},
            {"name": "tone", "required": false},
        ],
    }]);
    assert_eq!(result["prompts"], expected);
}

// PROMPT-03, PROMPT-04
#[tokio::test(start_paused = true)]
async fn prompt_argument_strings_are_parsed_as_field_types() {
    for version in REVISIONS {
        let mut pipe = Pipe::speaking(&server(Prompt::new("review", review)), version).await;
        for (arguments, expected) in [
            (json!({"file": "a.rs"}), "a.rs None false None"),
            (
                json!({"file": "7", "limit": "7", "strict": "true", "tone": "dry"}),
                "7 Some(7) true Some(Dry)",
            ),
            (json!({"file": "", "unknown": "x"}), " None false None"),
        ] {
            let result =
                pipe.result("prompts/get", json!({"name": "review", "arguments": arguments})).await;
            let messages = json!([{"role": "user", "content": {"type": "text", "text": expected}}]);
            assert_eq!(result["messages"], messages, "{version}");
            assert_eq!(result.get("ttlMs"), None, "{version}");
        }
    }
}

// PROMPT-05
#[tokio::test(start_paused = true)]
async fn invalid_prompt_arguments_are_invalid_params() {
    for version in REVISIONS {
        let mut pipe = Pipe::speaking(&server(Prompt::new("review", review)), version).await;
        for (params, said) in [
            (json!({"name": "review"}), "the argument `file` is missing"),
            (json!({"name": "review", "arguments": {}}), "the argument `file` is missing"),
            (
                json!({"name": "review", "arguments": {"limit": "7"}}),
                "the argument `file` is missing",
            ),
            (
                json!({"name": "review", "arguments": {"file": "a", "limit": "many"}}),
                "`many` is not a non-negative integer",
            ),
            (
                json!({"name": "review", "arguments": {"file": "a", "limit": "256"}}),
                "`256` is not a non-negative integer",
            ),
            (
                json!({"name": "review", "arguments": {"file": "a", "strict": "yes"}}),
                "`yes` is not `true` or `false`",
            ),
            (
                json!({"name": "review", "arguments": {"file": "a", "tone": "rude"}}),
                "unknown variant `rude`",
            ),
            (json!({"name": "review", "arguments": {"file": 7}}), "must be strings"),
            (json!({"name": "review", "arguments": []}), "`params.arguments` must be an object"),
            (json!({}), "`params.name` is missing"),
            (json!({"name": "reviw"}), "unknown prompt `reviw`; did you mean `review`?"),
            (json!({"name": "other"}), "unknown prompt `other`"),
        ] {
            let refusal = pipe.error("prompts/get", params.clone()).await;
            assert_eq!(refusal["code"], -32602, "{version}: {params}");
            assert!(
                refusal["message"].as_str().unwrap().contains(said),
                "{version}: {params}: {refusal}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn prompt_arguments_can_be_declared_explicitly() {
    async fn read(cx: Cx) -> Result<String, Error> {
        Ok(cx.call().arguments()?.to_owned())
    }
    let prompt = Prompt::new("raw", read)
        .argument(PromptArgument::new("a").with_title("A").with_required(true))
        .argument(PromptArgument::new("b").with_description("Bee."));
    let mut pipe = Pipe::open(&server(prompt));
    let result = pipe.result("prompts/list", json!({})).await;
    let expected = json!([{"name": "a", "title": "A", "required": true}, {"name": "b", "description": "Bee."}]);
    assert_eq!(result["prompts"][0]["arguments"], expected);
    assert_eq!(
        pipe.error("prompts/get", json!({"name": "raw", "arguments": {"b": "1"}})).await["code"],
        -32602
    );
    let result = pipe.result("prompts/get", json!({"name": "raw", "arguments": {"a": "1"}})).await;
    assert_eq!(result["messages"][0]["content"]["text"], r#"{"a":"1"}"#);
}

// PROMPT-04
#[tokio::test(start_paused = true)]
async fn prompt_handler_return_types_become_messages() {
    let embedded = wire::ResourceContents::text("mem://a", "text").with_mime_type("text/plain");
    let embedded = wire::EmbeddedResource::from(embedded);
    let several = vec![
        PromptMessage::user("look"),
        PromptMessage::assistant(ContentBlock::image([0], "image/png")),
        PromptMessage::user(ContentBlock::audio([0], "audio/wav")),
        PromptMessage::user(ContentBlock::resource_link(wire::Resource::new("mem://a", "a"))),
        PromptMessage::user(ContentBlock::Resource(embedded)),
    ];
    let whole =
        GetPromptResult::new([PromptMessage::assistant("hello")]).with_description("Says hello.");
    let server = Server::builder("test", "1")
        .prompt(Prompt::new("text", async || "text"))
        .prompt(Prompt::new("message", async || PromptMessage::assistant("yes")))
        .prompt(Prompt::new("several", move || std::future::ready(several.clone())))
        .prompt(Prompt::new("whole", move || std::future::ready(whole.clone())))
        .build()
        .unwrap();
    let mut pipe = Pipe::open(&server);
    let message = |role: &str, content: Value| json!({"role": role, "content": content});
    let text = |text: &str| json!({"type": "text", "text": text});
    for (name, messages) in [
        ("text", json!([message("user", text("text"))])),
        ("message", json!([message("assistant", text("yes"))])),
        (
            "several",
            json!([
                message("user", text("look")),
                message(
                    "assistant",
                    json!({"type": "image", "data": "AA==", "mimeType": "image/png"})
                ),
                message("user", json!({"type": "audio", "data": "AA==", "mimeType": "audio/wav"})),
                message("user", json!({"type": "resource_link", "uri": "mem://a", "name": "a"})),
                message(
                    "user",
                    json!({"type": "resource", "resource": {"uri": "mem://a", "mimeType": "text/plain", "text": "text"}})
                ),
            ]),
        ),
        ("whole", json!([message("assistant", text("hello"))])),
    ] {
        let result = pipe.result("prompts/get", json!({"name": name})).await;
        assert_eq!(result["messages"], messages, "{name}");
        let description = (name == "whole").then(|| json!("Says hello."));
        assert_eq!(result.get("description"), description.as_ref(), "{name}");
    }
}

// PROMPT-05
#[tokio::test(start_paused = true)]
async fn prompt_handler_returning_not_found_is_unknown_prompt() {
    let gone = Prompt::new("gone", async || Err::<String, _>(Error::not_found()));
    let mut pipe = Pipe::open(&server(gone));
    let refusal = pipe.error("prompts/get", json!({"name": "gone"})).await;
    assert_eq!(refusal, json!({"code": -32602, "message": "unknown prompt `gone`"}));
}

// PROMPT-01, RPC-16
#[tokio::test(start_paused = true)]
async fn server_without_prompts_does_not_declare_them() {
    for (server, offered) in [
        (Server::builder("test", "1").build().unwrap(), false),
        (Server::builder("test", "1").advertise_prompts().build().unwrap(), true),
    ] {
        for version in REVISIONS {
            let mut pipe = Pipe::open(&server);
            let hello = match version {
                MODERN => pipe.result("server/discover", json!({})).await,
                _ => pipe.legacy(version).await,
            };
            assert_eq!(hello["capabilities"].get("prompts").is_some(), offered, "{version}");
            let answer = pipe.ask("prompts/list", json!({})).await;
            match offered {
                true => assert_eq!(answer["result"]["prompts"], json!([]), "{version}"),
                false => assert_eq!(answer["error"]["code"], -32601, "{version}"),
            }
            let code = if offered { -32602 } else { -32601 };
            assert_eq!(
                pipe.error("prompts/get", json!({"name": "p"})).await["code"],
                code,
                "{version}"
            );
        }
    }
}

#[test]
fn empty_or_duplicate_prompt_name_fails_build() {
    let why = |builder: outlive::server::ServerBuilder| builder.build().unwrap_err().to_string();
    let prompt = |name: &str| Prompt::new(name, async || "x");
    assert_eq!(why(Server::builder("t", "1").prompt(prompt(""))), "prompt ``: its name is empty");
    let twice = why(Server::builder("t", "1").prompt(prompt("p")).prompt(prompt("p")));
    assert!(twice.starts_with("prompt `p`: this name is already registered"), "{twice}");
}
