//! The prompts of the suite.

use outlive::{
    server::{Args, ContentBlock, Prompt, ServerBuilder, response::CompletionInput},
    wire::PromptMessage,
};

use crate::tools::{PNG, resource};

pub(crate) fn add(builder: ServerBuilder) -> ServerBuilder {
    builder
        .prompt(
            Prompt::new("test_simple_prompt", || async { "This is a simple prompt for testing." })
                .description("A prompt without arguments"),
        )
        .prompt(
            Prompt::new("test_prompt_with_arguments", with_arguments)
                .description("A prompt with two arguments")
                .complete("arg1", complete),
        )
        .prompt(
            Prompt::new("test_prompt_with_embedded_resource", with_resource)
                .description("A prompt with a resource in it"),
        )
        .prompt(
            Prompt::new("test_prompt_with_image", with_image)
                .description("A prompt with an image in it"),
        )
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Two {
    /// The first argument.
    arg1: String,
    /// The second argument.
    arg2: String,
}

async fn with_arguments(Args(Two { arg1, arg2 }): Args<Two>) -> String {
    format!("Prompt with arguments: arg1='{arg1}', arg2='{arg2}'")
}

async fn complete(partial: CompletionInput) -> Vec<String> {
    ["test", "testing", "value"]
        .iter()
        .filter(|word| word.starts_with(&partial.value))
        .map(|word| (*word).to_owned())
        .collect()
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Link {
    /// The resource to embed.
    resource_uri: String,
}

async fn with_resource(Args(Link { resource_uri }): Args<Link>) -> Vec<PromptMessage> {
    vec![
        PromptMessage::user(resource(
            &resource_uri,
            "text/plain",
            "Embedded resource content for testing.",
        )),
        PromptMessage::user("Please process the embedded resource above."),
    ]
}

async fn with_image() -> Vec<PromptMessage> {
    vec![
        PromptMessage::user(ContentBlock::image_base64(PNG, "image/png")),
        PromptMessage::user("Please analyze the image above."),
    ]
}
