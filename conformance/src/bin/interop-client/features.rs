//! The features, one function each.

#![expect(clippy::print_stdout, reason = "the report is the output of the program")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use outlive::{
    client::{
        Client,
        notifications::{ListenFilter, ServerNotification},
        request::result_text,
    },
    server::LoggingLevel,
};
use serde_json::json;

use crate::{
    PATIENCE,
    profile::{Profile, Tool},
};

/// The result of a feature, with the reason if it failed.
pub(crate) type Tried = Result<(), String>;

/// The features of `cargo xtask interop`, in their order.
const FEATURES: [&str; 13] = [
    "tools",
    "resources",
    "prompts",
    "completion",
    "logging",
    "progress",
    "elicitation",
    "sampling",
    "roots",
    "tasks",
    "cancel",
    "listen",
    "resumption",
];

/// Tests every feature that the server of the profile has.
pub(crate) async fn try_all(client: &Client, profile: &Profile) {
    for feature in FEATURES {
        let has = match feature {
            "logging" => profile.logging.is_some(),
            "cancel" => profile.cancel.is_some(),
            "listen" => profile.listen.is_some(),
            "resumption" => profile.resumption.is_some(),
            _ => true,
        };
        if has {
            report(feature, Box::pin(try_one(client, profile, feature))).await;
        }
    }
}

pub(crate) async fn try_one(client: &Client, profile: &Profile, feature: &str) -> Tried {
    let absent = || format!("the server has no feature `{feature}`");
    match feature {
        "tools" => tools(client, &profile.plain).await,
        "resources" => resources(client, profile).await,
        "prompts" => prompts(client, profile).await,
        "completion" => completion(client, profile).await,
        "logging" => logging(client, profile.logging.as_ref().ok_or_else(absent)?).await,
        "progress" => progress(client, &profile.progress).await,
        "elicitation" => calling(client, &profile.elicitation).await,
        "sampling" => calling(client, &profile.sampling).await,
        "roots" => calling(client, &profile.roots).await,
        "tasks" => tasks(client, &profile.task).await,
        "cancel" => {
            let (hold, held) = profile.cancel.as_ref().ok_or_else(absent)?;
            cancel(client, hold, held).await
        }
        "listen" => {
            let (resource, change) = profile.listen.as_ref().ok_or_else(absent)?;
            listen(client, *resource, change).await
        }
        "resumption" => calling(client, profile.resumption.as_ref().ok_or_else(absent)?).await,
        _ => Err(absent()),
    }
}

pub(crate) async fn report(feature: &str, trying: impl Future<Output = Tried>) {
    let tried = match tokio::time::timeout(PATIENCE, trying).await {
        Ok(tried) => tried,
        Err(_) => Err(format!("no result within {} seconds", PATIENCE.as_secs())),
    };
    println!("{}", json!({"feature": feature, "why": tried.err()}));
}

async fn tools(client: &Client, tool: &Tool) -> Tried {
    let listed = client.list_tools().collect().await.map_err(shown)?;
    let found = listed.iter().any(|it| it.name == tool.0);
    found.then_some(()).ok_or_else(|| format!("`{}` is not listed", tool.0))?;
    calling(client, tool).await
}

async fn resources(client: &Client, profile: &Profile) -> Tried {
    let listed = client.list_resources().collect().await.map_err(shown)?;
    client.list_resource_templates().collect().await.map_err(shown)?;
    let found = listed.iter().any(|it| it.uri == profile.resource);
    found.then_some(()).ok_or_else(|| format!("`{}` is not listed", profile.resource))?;
    let read = client.read_resource(profile.resource).await.map_err(shown)?;
    (!read.contents.is_empty()).then_some(()).ok_or_else(|| "the resource is empty".to_owned())
}

async fn prompts(client: &Client, profile: &Profile) -> Tried {
    let (name, arguments) = profile.prompt;
    let listed = client.list_prompts().collect().await.map_err(shown)?;
    let found = listed.iter().any(|it| it.name == name);
    found.then_some(()).ok_or_else(|| format!("`{name}` is not listed"))?;
    let mut getting = client.get_prompt(name);
    for (name, value) in arguments {
        getting = getting.arg(*name, *value);
    }
    let prompt = getting.await.map_err(shown)?;
    (!prompt.messages.is_empty()).then_some(()).ok_or_else(|| "the prompt is empty".to_owned())
}

async fn completion(client: &Client, profile: &Profile) -> Tried {
    let [prompt, argument, typed, expected] = profile.completion;
    let found = client.complete_prompt(prompt, argument, typed).await.map_err(shown)?;
    let has = found.values.iter().any(|it| it == expected);
    has.then_some(()).ok_or_else(|| format!("the completion is {:?}", found.values))
}

async fn logging(client: &Client, tool: &Tool) -> Tried {
    let mut notices = client.notifications();
    // Before 2026-07-28 the level is set once per session, then by each call.
    let set = client.set_log_level(LoggingLevel::Debug).await;
    client.call_tool(tool.0, &tool.1).log_level(LoggingLevel::Debug).await.map_err(shown)?;
    let heard = async {
        while let Some(notice) = notices.next().await {
            if matches!(notice, ServerNotification::Log(_)) {
                return Ok(());
            }
        }
        Err("the client is closed".to_owned())
    };
    match tokio::time::timeout(PATIENCE / 2, heard).await {
        Ok(heard) => heard,
        Err(_) => Err(format!("no log message arrived; setting the level: {set:?}")),
    }
}

async fn progress(client: &Client, tool: &Tool) -> Tried {
    let heard = Arc::new(AtomicUsize::new(0));
    let hearing = Arc::clone(&heard);
    let call = client.call_tool(tool.0, &tool.1).on_progress(move |_| {
        hearing.fetch_add(1, Relaxed);
    });
    said(&call.await.map_err(shown)?, tool)?;
    let heard = heard.load(Relaxed);
    (heard > 1).then_some(()).ok_or_else(|| format!("{heard} progress notifications arrived"))
}

pub(crate) async fn tasks(client: &Client, tool: &Tool) -> Tried {
    let starting = client.start_tool(tool.0, &tool.1).as_task();
    let mut handle = starting.await.map_err(shown)?;
    if handle.task_id().is_none() {
        return Err("it was answered without a task".to_owned());
    }
    said(&handle.wait().await.map_err(shown)?, tool)
}

async fn cancel(client: &Client, hold: &Tool, held: &Tool) -> Tried {
    let call = client.call_tool(hold.0, &hold.1).inline().into_future();
    let running = tokio::spawn(call);
    until(client, held.0, "running: 1").await?;
    // Dropping the future before the response cancels the call.
    running.abort();
    until(client, held.0, held.2).await
}

/// Calls a tool repeatedly until its text contains `expected`.
async fn until(client: &Client, tool: &str, expected: &str) -> Tried {
    let mut says = String::new();
    for _ in 0..50 {
        says = result_text(&client.call_tool(tool, json!({})).await.map_err(shown)?);
        if says.contains(expected) {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Err(format!("`{tool}` does not return `{expected}`, but `{says}`"))
}

pub(crate) async fn listen(client: &Client, resource: Option<&str>, change: &Tool) -> Tried {
    let filter = match resource {
        Some(uri) => ListenFilter::new().resource(uri),
        None => ListenFilter::new().tools(),
    };
    let mut changes = client.listen(filter).await.map_err(shown)?;
    calling(client, change).await?;
    while let Some(notice) = changes.next().await {
        match notice {
            ServerNotification::ToolsChanged if resource.is_none() => return Ok(()),
            ServerNotification::ResourceUpdated(uri) if resource == Some(uri.as_str()) => {
                return Ok(());
            }
            _ => {}
        }
    }
    Err("the subscription ended".to_owned())
}

pub(crate) async fn calling(client: &Client, tool: &Tool) -> Tried {
    said(&client.call_tool(tool.0, &tool.1).await.map_err(shown)?, tool)
}

fn said(result: &outlive::wire::CallToolResult, tool: &Tool) -> Tried {
    let says = result_text(result);
    let fits = result.is_error != Some(true) && says.contains(tool.2);
    fits.then_some(()).ok_or_else(|| format!("`{}` returns `{says}`", tool.0))
}

#[expect(clippy::needless_pass_by_value, reason = "the function is passed to `map_err`")]
pub(crate) fn shown(error: outlive::client::Error) -> String {
    error.to_string()
}
