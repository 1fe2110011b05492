//! Input requests of upstreams, to clients of both eras.

use outlive::{
    client::{Client, Version},
    server::{Durable, Result, Server, Tool, durable::ElicitOutcome},
    wire::RequestedSchema,
};
use serde_json::json;

use crate::support::{Counter, HttpUpstream, Served, VERSIONS, process, text};

fn asking_server(executions: &Counter) -> Server {
    let executions = executions.clone();
    let form = move |cx: Durable| {
        let executions = executions.clone();
        async move {
            let schema: RequestedSchema = serde_json::from_value(json!({
                "type": "object", "properties": {"color": {"type": "string"}},
                "required": ["color"]
            }))?;
            let asked = cx.elicit_with::<serde_json::Value>("color", "Which color?", schema);
            let outcome = asked.outcome().await?;
            executions.add();
            let text: Result<String> = Ok(match outcome {
                ElicitOutcome::Accepted(chosen) => format!("painted {}", chosen["color"]),
                _ => "not painted".to_owned(),
            });
            text
        }
    };
    Server::builder("up", "1").tool(Tool::new("form", form)).build().unwrap()
}

/// Versions with forms.
fn with_forms() -> impl Iterator<Item = Version> {
    VERSIONS.into_iter().skip(2)
}

#[tokio::test(flavor = "multi_thread")]
async fn form_of_every_upstream_over_http_reaches_legacy_clients() {
    for version in with_forms() {
        let executions = Counter::default();
        let upstream = HttpUpstream::serve(asking_server(&executions)).await;
        let served = Served::new([upstream.settings("up").protocol_version(version)]);
        for client_version in [Version::V2025_06_18, Version::V2025_11_25] {
            let client = served.answering(client_version).await;
            let result = client.call_tool("up__form", json!({})).await.unwrap();
            assert_eq!(text(&result), r#"painted "red""#, "{client_version} {version}");
        }
        assert_eq!(executions.get(), 2, "{version}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn form_of_a_modern_upstream_reaches_a_modern_client_by_rounds() {
    let executions = Counter::default();
    let upstream = HttpUpstream::serve(asking_server(&executions)).await;
    let served = Served::new([upstream.settings("up").protocol_version(Version::V2026_07_28)]);
    let client = served.answering(Version::V2026_07_28).await;
    let result = client.call_tool("up__form", json!({})).await.unwrap();
    assert_eq!(text(&result), r#"painted "red""#);
    assert_eq!(executions.get(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn request_state_of_the_upstream_stays_inside_that_of_the_gateway() {
    let upstream = HttpUpstream::serve(asking_server(&Counter::default())).await;
    let served = Served::new([upstream.settings("up").protocol_version(Version::V2026_07_28)]);
    let client = Client::builder("test", "1")
        .protocol_version(Version::V2026_07_28)
        .input_handler(crate::support::callbacks())
        .connect(&served.server)
        .await
        .unwrap();
    // Two calls in turn: a state of the first must not be usable in the second.
    for _ in 0..2 {
        let result = client.call_tool("up__form", json!({})).await.unwrap();
        assert_eq!(text(&result), r#"painted "red""#);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn form_and_sampling_of_a_process_reach_a_legacy_client() {
    for version in [Version::V2025_06_18, Version::V2025_11_25] {
        let served = Served::new([process("child", "serves", None).protocol_version(version)]);
        let client = served.answering(Version::V2025_06_18).await;
        let result = client.call_tool("child__form", json!({})).await.unwrap();
        assert_eq!(text(&result), r#"painted "red""#, "{version}");
        let result = client.call_tool("child__sample", json!({})).await.unwrap();
        assert_eq!(text(&result), "sampled by test-model", "{version}");
        served.gateway.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn client_without_forms_declares_none_to_the_upstream() {
    let served = Served::new([process("child", "serves", None)]);
    let client = served.client(Version::V2025_06_18).await;
    let error = client.call_tool("child__form", json!({})).await.unwrap_err();
    assert!(error.to_string().contains("elicitation"), "{error}");
    served.gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn form_of_a_legacy_upstream_reaches_a_modern_client_while_its_call_waits() {
    for version in [Version::V2025_06_18, Version::V2025_11_25] {
        let executions = Counter::default();
        let upstream = HttpUpstream::serve(asking_server(&executions)).await;
        let served = Served::hosted([
            upstream.settings("up").protocol_version(version),
            process("child", "serves", None).protocol_version(version),
        ]);
        let client = served.answering(Version::V2026_07_28).await;
        for tool in ["up__form", "child__form"] {
            let result = client.call_tool(tool, json!({})).await.unwrap();
            assert_eq!(text(&result), r#"painted "red""#, "{tool} {version}");
        }
        assert_eq!(executions.get(), 1, "{version}");
        served.gateway.shutdown().await;
    }
}
