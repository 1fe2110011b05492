//! Input requests of the suite: one handler each, in both eras.

use outlive::{
    Form,
    server::{Args, Durable, Prompt, Result, ServerBuilder, Tool, durable::DurableError},
    wire::{
        CreateMessageRequestParams, CreateMessageResult, EnumOption, LegacyTitledEnumSchema,
        PromptMessage, RequestedSchema, Role, SamplingMessage, SamplingMessageContentBlock,
        TitledItems, TitledMultiSelectEnumSchema, TitledSingleSelectEnumSchema, UntitledItems,
        UntitledMultiSelectEnumSchema, UntitledSingleSelectEnumSchema,
    },
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

pub(crate) fn add(builder: ServerBuilder) -> ServerBuilder {
    builder
        .tool(Tool::new("test_sampling", sampling).description("Samples the client's model"))
        .tool(Tool::new("test_elicitation", elicitation).description("Elicits from the user"))
        .tool(
            Tool::new("test_elicitation_sep1034_defaults", defaults)
                .description("Elicits with default values"),
        )
        .tool(
            Tool::new("test_elicitation_sep1330_enums", enums)
                .description("Elicits every kind of choice"),
        )
        .tool(Tool::new("test_streaming_elicitation", name).description("Elicits from the user"))
        .tool(
            Tool::new("test_input_required_result_elicitation", name).description("Elicits a name"),
        )
        .tool(
            Tool::new("test_input_required_result_sampling", capital)
                .description("Samples a capital"),
        )
        .tool(
            Tool::new("test_input_required_result_list_roots", roots)
                .description("Requests the roots"),
        )
        .tool(
            Tool::new("test_input_required_result_request_state", confirm)
                .description("Elicits with a request state"),
        )
        .tool(
            Tool::new("test_input_required_result_tampered_state", confirm)
                .description("Elicits and detects a changed request state"),
        )
        .tool(
            Tool::new("test_input_required_result_multiple_inputs", several)
                .description("Makes three input requests in parallel"),
        )
        .tool(
            Tool::new("test_input_required_result_multi_round", rounds)
                .description("Makes two input requests in sequence"),
        )
        .tool(
            Tool::new("test_input_required_result_capabilities", capable)
                .description("Makes an input request that the client supports"),
        )
        .prompt(
            Prompt::new("test_input_required_result_prompt", prompt)
                .description("A prompt that elicits"),
        )
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Ask {
    /// The prompt for the model.
    prompt: String,
}

pub(crate) async fn sampling(cx: Durable, Args(ask): Args<Ask>) -> Result<String> {
    let answer = cx.sample("llm", question(ask.prompt)).await?;
    Ok(format!("LLM response: {}", text(&answer)))
}

#[derive(Deserialize, JsonSchema)]
struct Message {
    /// The message for the user.
    message: String,
}

#[derive(Deserialize, JsonSchema, Form)]
struct User {
    /// User's response
    username: String,
    /// User's email address
    email: String,
}

async fn elicitation(cx: Durable, Args(ask): Args<Message>) -> Result<String> {
    let user: User = cx.elicit("user", ask.message).await?;
    Ok(format!("User response: {} <{}>", user.username, user.email))
}

#[derive(Deserialize, JsonSchema, Form)]
#[serde(default)]
struct Defaults {
    name: String,
    age: i64,
    score: f64,
    status: Status,
    verified: bool,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, Form, serde::Serialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    #[default]
    Active,
    Inactive,
    Pending,
}

impl Default for Defaults {
    fn default() -> Self {
        Self {
            name: "John Doe".to_owned(),
            age: 30,
            score: 95.5,
            status: Status::Active,
            verified: true,
        }
    }
}

async fn defaults(cx: Durable) -> Result<String> {
    let Defaults { name, age, score, status, verified } =
        cx.elicit("defaults", "Please review these").await?;
    Ok(format!("Elicitation completed: {name}, {age}, {score}, {status:?}, {verified}"))
}

/// An explicit schema: no Rust type yields the enum form from before 2025-11-25.
async fn enums(cx: Durable) -> Result<String> {
    let values = || ["option1", "option2", "option3"].map(str::to_owned).to_vec();
    let options = || {
        let option = |value: String| EnumOption { title: format!("The {value}"), value };
        values().into_iter().map(option).collect::<Vec<_>>()
    };
    let schema = RequestedSchema::default()
        .with_optional(
            "untitledSingle",
            UntitledSingleSelectEnumSchema { values: values(), ..Default::default() },
        )
        .with_optional(
            "titledSingle",
            TitledSingleSelectEnumSchema { options: options(), ..Default::default() },
        )
        .with_optional(
            "legacyEnum",
            LegacyTitledEnumSchema {
                values: values(),
                enum_names: Some(options().into_iter().map(|option| option.title).collect()),
                ..Default::default()
            },
        )
        .with_optional(
            "untitledMulti",
            UntitledMultiSelectEnumSchema {
                items: UntitledItems { values: values() },
                ..Default::default()
            },
        )
        .with_optional(
            "titledMulti",
            TitledMultiSelectEnumSchema {
                items: TitledItems { options: options() },
                ..Default::default()
            },
        );
    let chosen: Value = cx.elicit_with("choice", "Please choose", schema).await?;
    Ok(format!("Elicitation completed: {chosen}"))
}

#[derive(Deserialize, JsonSchema, Form)]
struct Name {
    name: String,
}

async fn name(cx: Durable) -> Result<String> {
    let Name { name } = cx.elicit("user_name", "What is your name?").await?;
    Ok(format!("Hello, {name}!"))
}

async fn capital(cx: Durable) -> Result<String> {
    let question = question("What is the capital of France?");
    Ok(text(&cx.sample("capital_question", question).await?))
}

async fn roots(cx: Durable) -> Result<String> {
    let roots = cx.roots("client_roots").await?;
    Ok(format!("{} roots", roots.len()))
}

#[derive(Deserialize, JsonSchema, Form)]
struct Confirm {
    ok: bool,
}

async fn confirm(cx: Durable) -> Result<String> {
    let Confirm { ok } = cx.elicit("confirm", "Is this all right?").await?;
    Ok(format!("state-ok: {ok}"))
}

async fn several(cx: Durable) -> Result<String> {
    let (name, greeting, roots) = tokio::join!(
        cx.elicit::<Name>("user_name", "What is your name?"),
        cx.sample("greeting", question("Write a greeting")),
        cx.roots("client_roots"),
    );
    Ok(format!("{}: {}, {} roots", name?.name, text(&greeting?), roots?.len()))
}

#[derive(Deserialize, JsonSchema, Form)]
struct Colour {
    color: String,
}

async fn rounds(cx: Durable) -> Result<String> {
    let Name { name } = cx.elicit("step1", "What is your name?").await?;
    let Colour { color } = cx.elicit("step2", "What is your favorite color?").await?;
    Ok(format!("{name} likes {color}"))
}

/// Elicits, or samples if the client does not support elicitation.
async fn capable(cx: Durable) -> Result<String> {
    match cx.elicit::<Name>("user_name", "What is your name?").await {
        Ok(Name { name }) => Ok(name),
        Err(error)
            if matches!(error.durable_error(), Some(DurableError::MissingCapability { .. })) =>
        {
            Ok(text(&cx.sample("name", question("Make up a name")).await?))
        }
        Err(error) => Err(error),
    }
}

#[derive(Deserialize, JsonSchema, Form)]
struct Context {
    context: String,
}

async fn prompt(cx: Durable) -> Result<PromptMessage> {
    let Context { context } = cx.elicit("user_context", "What is this about?").await?;
    Ok(PromptMessage::user(format!("This is about {context}.")))
}

fn question(text: impl Into<String>) -> CreateMessageRequestParams {
    CreateMessageRequestParams {
        messages: vec![SamplingMessage::text(Role::User, text)],
        max_tokens: 100,
        ..CreateMessageRequestParams::default()
    }
}

fn text(answer: &CreateMessageResult) -> String {
    let texts = answer.content.blocks().iter().filter_map(|block| match block {
        SamplingMessageContentBlock::Text(text) => Some(text.text.as_str()),
        _ => None,
    });
    texts.collect()
}
