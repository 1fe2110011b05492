//! The features that `FEATURES` in the environment selects, for `cargo xtask interop --gateway`.

use std::time::Duration;

use outlive::client::{Client, request::result_text};
use serde_json::{Value, json};

use crate::{
    features::{self, Tried, report, shown},
    profile::{Profile, Tool},
};

/// Names of the selected features.
pub(crate) fn selected() -> Option<Vec<String>> {
    let names = std::env::var("FEATURES").ok()?;
    Some(names.split(',').map(str::to_owned).collect())
}

pub(crate) async fn try_selected(client: &Client, profile: &Profile, selected: &[String]) {
    for feature in selected {
        report(feature, Box::pin(try_one(client, profile, feature))).await;
    }
}

async fn try_one(client: &Client, profile: &Profile, feature: &str) -> Tried {
    let calls = |name, expected| Tool(name, json!({}), expected);
    let state = "test_input_required_result_request_state";
    match feature {
        "url" => features::calling(client, &calls("test_url_elicitation", "url: accept")).await,
        "url_required" => features::calling(client, &calls("test_url_required", "consented")).await,
        "state" => features::calling(client, &calls(state, "state-ok")).await,
        "gateway_state" | "hosted" => features::calling(client, &profile.sampling).await,
        "templates" => templates(client).await,
        "subscribe" => {
            let touch = calls("test_touch_resource", "touched");
            // A gateway subscribes at its upstream a moment later, so the resource changes often.
            tokio::select! {
                updated = features::listen(client, Some("test://watched-resource"), &touch) => updated,
                touched = touching(client, &touch) => touched,
            }
        }
        "task" => features::tasks(client, &profile.task).await,
        "task_input" => {
            let Tool(_, prompt, expected) = &profile.sampling;
            let sample = Tool("sample_in_task", prompt.clone(), expected);
            features::tasks(client, &sample).await
        }
        "partials" => partials(client).await,
        _ => features::try_one(client, profile, feature).await,
    }
}

/// Changes the watched resource again and again.
async fn touching(client: &Client, touch: &Tool) -> Tried {
    loop {
        tokio::time::sleep(Duration::from_millis(200)).await;
        features::calling(client, touch).await?;
    }
}

async fn templates(client: &Client) -> Tried {
    let listed = client.list_resource_templates().collect().await.map_err(shown)?;
    let found = listed.iter().any(|it| it.uri_template == "test://template/{id}/data");
    found.then_some(()).ok_or_else(|| "the template is not listed".to_owned())?;
    let read = client.read_resource("test://template/7/data").await.map_err(shown)?;
    let contents = format!("{:?}", read.contents);
    contents.contains("ID: 7").then_some(()).ok_or_else(|| format!("the resource is {contents}"))
}

/// Reads the segments of a task while it runs.
async fn partials(client: &Client) -> Tried {
    let mut stream = client.stream_tool("test_partial_results", json!({})).await.map_err(shown)?;
    let mut texts: Vec<Value> = Vec::new();
    while let Some(segment) = stream.next().await {
        texts.push(json!(segment.map_err(shown)?.block));
    }
    let result = result_text(&stream.finish().await.map_err(shown)?);
    let fits = texts.len() >= 3 && result.contains("one") && result.contains("that is all");
    fits.then_some(()).ok_or_else(|| format!("segments {texts:?}, result `{result}`"))
}
