//! Our client with a third-party server: `interop-client PROFILE VERSION URL`, or `… VERSION --
//! PROGRAM ARGUMENT…`.
//!
//! Tests every feature in sequence and prints one line of JSON each: the feature, and the reason if
//! it failed. `cargo xtask interop` reads the lines.

mod features;
mod profile;

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
    let connecting = Client::builder("outlive-interop", "1.0.0")
        .version_cache(VersionCache::new())
        .protocol_version(version)
        .input_handler(answers())
        .limits(|limits| {
            limits.request_timeout = PATIENCE;
            // An interpreter may take longer than the default on a busy machine.
            limits.probe_timeout = PATIENCE;
        })
        .connect(target);
    let client = tokio::time::timeout(PATIENCE, connecting).await??;
    features::try_all(&client, &profile).await;
    client.close().await;
    Ok(())
}

/// Responds to every input request.
fn answers() -> InputCallbacks {
    InputCallbacks::new()
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
