//! Resources, templates, prompts and completion of upstreams.

use outlive::{
    client::Version,
    server::{Args, Prompt, Resource, ResourceTemplate, Server},
    wire::ResourceContents,
};
use outlive_gateway::Upstream;
use serde_json::json;

use crate::support::{HttpUpstream, Served, VERSIONS};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Named {
    name: String,
}

fn server(label: &'static str) -> Server {
    let greet = |Args(named): Args<Named>| async move { format!("Greet {} politely", named.name) };
    let note =
        move |Args(named): Args<Named>| async move { format!("{label}: note {}", named.name) };
    Server::builder("up", "1")
        .resource(Resource::new("shared://x", "x", move || async move { format!("{label}: x") }))
        .resource(Resource::new(format!("{label}://y"), "y", move || async move {
            format!("{label}: y")
        }))
        .resource_template(ResourceTemplate::new(format!("{label}://notes/{{name}}"), "note", note))
        .prompt(
            Prompt::new("greet", greet)
                .complete("name", async || vec!["Ada".to_owned(), "Alan".to_owned()]),
        )
        .build()
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn resources_of_two_upstreams_are_read_under_their_shown_uris() {
    let (a, b) = (HttpUpstream::serve(server("a")).await, HttpUpstream::serve(server("b")).await);
    for upstream_version in [Version::V2025_06_18, Version::V2026_07_28] {
        let served = Served::new([
            a.settings("first").protocol_version(upstream_version),
            b.settings("second").protocol_version(upstream_version),
        ]);
        for version in VERSIONS {
            let client = served.client(version).await;
            let resources = client.list_resources().collect().await.unwrap();
            let uris: Vec<&str> = resources.iter().map(|resource| resource.uri.as_str()).collect();
            assert_eq!(uris, ["shared://x", "a://y", "second+shared://x", "b://y"], "{version}");
            for (uri, expected) in [
                ("shared://x", "a: x"),
                ("second+shared://x", "b: x"),
                ("b://y", "b: y"),
                ("second+b://y", "b: y"),
                ("b://notes/todo", "b: note todo"),
            ] {
                let read = client.read_resource(uri).await.unwrap();
                let ResourceContents::Text(contents) = &read.contents[0] else { panic!("no text") };
                assert_eq!(contents.text, expected, "{uri} {version} {upstream_version}");
            }
            let missing = client.read_resource("nothing://here").await.unwrap_err();
            assert!(missing.server_error().is_some());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn contents_have_the_uri_that_clients_see() {
    let (a, b) = (HttpUpstream::serve(server("a")).await, HttpUpstream::serve(server("b")).await);
    let served = Served::new([a.settings("first"), b.settings("second")]);
    let client = served.client(Version::V2025_06_18).await;
    for uri in ["shared://x", "second+shared://x", "b://y"] {
        let read = client.read_resource(uri).await.unwrap();
        let ResourceContents::Text(contents) = &read.contents[0] else { panic!("no text") };
        assert_eq!(contents.uri, uri);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn uri_of_an_upstream_that_is_not_listed_yet_waits_for_it() {
    let (a, b) = (HttpUpstream::serve(server("a")).await, HttpUpstream::serve(server("b")).await);
    // Several times, because either upstream may be listed first.
    for _ in 0..10 {
        let served = Served::new([a.settings("first"), b.settings("second")]);
        let client = served.client(Version::V2025_06_18).await;
        client.read_resource("a://y").await.unwrap();
        for uri in ["second+shared://x", "b://y"] {
            let read = client.read_resource(uri).await.unwrap();
            assert_eq!(json!(read.contents)[0]["uri"], uri);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unlisted_uri_of_the_only_reachable_upstream_is_read() {
    let anything = ResourceTemplate::new("any://{+path}", "any", || async { "x".to_owned() });
    let own = Resource::new("any://listed", "listed", || async { "listed".to_owned() });
    let server =
        Server::builder("up", "1").resource(own).resource_template(anything).build().unwrap();
    let upstream = HttpUpstream::serve(server).await;
    let down = Upstream::url("down", "http://127.0.0.1:9/mcp");
    let served = Served::new([upstream.settings("up"), down]);
    let client = served.client(Version::V2025_06_18).await;
    let read = client.read_resource("any://other/path").await.unwrap();
    assert_eq!(json!(read.contents)[0]["text"], "x");
    let unknown = client.read_resource("nothing://here").await.unwrap_err();
    assert!(unknown.server_error().is_some(), "{unknown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn prompts_and_their_completion_work_in_every_version() {
    let upstream = HttpUpstream::serve(server("a")).await;
    for upstream_version in VERSIONS {
        let served = Served::new([upstream.settings("up").protocol_version(upstream_version)]);
        for version in [Version::V2025_06_18, Version::V2026_07_28] {
            let client = served.client(version).await;
            let prompts = client.list_prompts().collect().await.unwrap();
            assert_eq!(prompts[0].name, "up__greet");
            let got = client.get_prompt("up__greet").arg("name", "Ada").await.unwrap();
            let shown = json!(got.messages).to_string();
            assert!(shown.contains("Greet Ada politely"), "{shown}");
            let completed = client.complete_prompt("up__greet", "name", "A").await.unwrap();
            assert_eq!(completed.values, ["Ada", "Alan"], "{upstream_version}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn completion_of_an_upstream_without_it_has_no_suggestions() {
    let greet = |Args(named): Args<Named>| async move { format!("Greet {}", named.name) };
    let server = Server::builder("up", "1").prompt(Prompt::new("greet", greet)).build().unwrap();
    let upstream = HttpUpstream::serve(server).await;
    for upstream_version in VERSIONS {
        let served = Served::new([upstream.settings("up").protocol_version(upstream_version)]);
        let client = served.client(Version::V2025_06_18).await;
        let completed = client.complete_prompt("up__greet", "name", "A").await.unwrap();
        assert!(completed.values.is_empty(), "{upstream_version}");
    }
}
