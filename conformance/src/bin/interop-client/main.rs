//! Our client with a third-party server: `interop-client PROFILE VERSION URL`, or `… VERSION --
//! PROGRAM ARGUMENT…`.
//!
//! Tests every feature in sequence and prints one line of JSON each: the feature, and the reason if
//! it failed. `cargo xtask interop` reads the lines. `FEATURES` in the environment selects features.

mod features;
mod profile;
mod selected;

use std::{env, error::Error, time::Duration};

use outlive::{
    client::{
        Client, Target,
        input::{InputCallbacks, InputKind, InputResponse, PendingInput},
        transport::{ChildProcess, VersionCache},
    },
    wire::{CreateMessageResult, PrimitiveSchemaDefinition as Field, SamplingMessage, Version},
};
use serde_json::{Map, Value, json};

use crate::profile::Profile;

/// Timeout of a feature.
const PATIENCE: Duration = Duration::from_secs(20);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let usage = "usage: interop-client PROFILE VERSION (URL | -- PROGRAM ARGUMENT…)";
    let profile = Profile::named(&arguments.next().ok_or(usage)?).ok_or(usage)?;
    let version = Version::parse(&arguments.next().ok_or(usage)?).ok_or(usage)?;
    let target = match arguments.next().ok_or(usage)?.as_str() {
        "--" => {
            let program = ChildProcess::new(arguments.next().ok_or(usage)?).args(arguments);
            Target::from(program.on_stderr(|line| eprintln!("{line}")))
        }
        url => Target::from(url),
    };
    let selected = selected::selected();
    let has = |feature: &str| selected.iter().flatten().any(|it| it.starts_with(feature));
    let mut builder = Client::builder("outlive-interop", "1.0.0")
        .version_cache(VersionCache::new())
        .protocol_version(version)
        .input_handler(answers(has("url")))
        .limits(|limits| {
            limits.request_timeout = PATIENCE;
            // An interpreter may take longer than the default on a busy machine.
            limits.probe_timeout = PATIENCE;
        })
        .host_tasks(has("hosted"));
    if has("partials") {
        builder = builder.partial_results();
    }
    let client = tokio::time::timeout(PATIENCE, builder.connect(target)).await??;
    match &selected {
        Some(selected) => selected::try_selected(&client, &profile, selected).await,
        None => features::try_all(&client, &profile).await,
    }
    client.close().await;
    Ok(())
}

/// Responds to every input request, and to URLs only if the client supports them.
fn answers(has_urls: bool) -> InputCallbacks {
    let callbacks = match has_urls {
        true => InputCallbacks::new().url(|_| async { InputResponse::accept_url() }),
        false => InputCallbacks::new(),
    };
    callbacks
        .form(|question| async move { filled_in(&question) })
        .sampling(|_| async {
            let message = SamplingMessage::text(outlive::wire::Role::Assistant, "a sampled text");
            InputResponse::Message(Box::new(CreateMessageResult {
                role: message.role,
                content: message.content,
                model: "a-model".to_owned(),
                stop_reason: Some("endTurn".to_owned()),
                meta: None,
            }))
        })
        .roots([("file:///interop", "interop")])
}

/// Fills in the required fields, with defaults where they exist.
fn filled_in(question: &PendingInput) -> InputResponse {
    if let Some(answer) = question.defaults() {
        return answer;
    }
    let InputKind::Form(form) = &question.request else { return InputResponse::Decline };
    let required = form.requested_schema.required.iter().flatten();
    let mut content = Map::new();
    for name in required {
        let found = form.requested_schema.properties.iter().find(|(it, _)| it == name);
        let value: Value = match found {
            Some((_, Field::Boolean(_))) => json!(true),
            Some((_, Field::Number(_))) => json!(1),
            _ => json!("ada@example.com"),
        };
        content.insert(name.clone(), value);
    }
    InputResponse::accept(content)
}
