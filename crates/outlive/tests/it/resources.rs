//! Resource contents, templates and subscriptions.

mod subscriptions; // notifications about changed contents

use outlive::{
    server::{Args, Error, Json, Resource, ResourceTemplate, Server, ServerBuilder},
    wire::{self, ResourceContents},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::pipe::{MODERN, Pipe, REVISIONS};

async fn read(pipe: &mut Pipe, uri: &str) -> Value {
    pipe.result("resources/read", json!({"uri": uri})).await["contents"].clone()
}

// RES-03, RES-13
#[tokio::test(start_paused = true)]
async fn resource_handler_return_types_become_contents() {
    let own = ResourceContents::text("mem://part", "part").with_mime_type("text/html");
    let several = vec![
        ResourceContents::text("mem://dir/a", "a"),
        ResourceContents::blob("mem://dir/b", [0, 1, 2]),
    ];
    let server = Server::builder("test", "1")
        .resource(Resource::new("mem://text", "text", async || "text"))
        .resource(Resource::new("mem://bytes", "bytes", async || vec![0u8, 1, 2, 255]))
        .resource(Resource::new("mem://json", "json", async || Json(json!({"a": 1}))))
        .resource(Resource::new("mem://own", "own", move || std::future::ready(own.clone())))
        .resource(Resource::new("mem://dir", "dir", move || std::future::ready(several.clone())))
        .resource(Resource::new("mem://some", "some", async || {
            Some(Ok::<_, Error>("some".to_owned()))
        }))
        .build()
        .unwrap();
    for version in REVISIONS {
        let mut pipe = Pipe::speaking(&server, version).await;
        for (uri, expected) in [
            ("mem://text", json!([{"uri": "mem://text", "text": "text"}])),
            ("mem://bytes", json!([{"uri": "mem://bytes", "blob": "AAEC/w=="}])),
            (
                "mem://json",
                json!([{"uri": "mem://json", "mimeType": "application/json", "text": "{\"a\":1}"}]),
            ),
            ("mem://own", json!([{"uri": "mem://part", "mimeType": "text/html", "text": "part"}])),
            (
                "mem://dir",
                json!([{"uri": "mem://dir/a", "text": "a"}, {"uri": "mem://dir/b", "blob": "AAEC"}]),
            ),
            ("mem://some", json!([{"uri": "mem://some", "text": "some"}])),
        ] {
            assert_eq!(read(&mut pipe, uri).await, expected, "{version}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn resource_contents_default_to_registered_mime_type() {
    let both = || {
        let own = ResourceContents::text("mem://b", "b").with_mime_type("text/css");
        std::future::ready(vec![ResourceContents::blob("mem://a", [0]), own])
    };
    let server = Server::builder("test", "1")
        .resource(Resource::new("mem://both", "both", both).mime_type("text/plain"))
        .resource_template(
            ResourceTemplate::new("t://{x}", "t", async || "t").mime_type("text/markdown"),
        )
        .build()
        .unwrap();
    let mut pipe = Pipe::open(&server);
    let expected = json!([
        {"uri": "mem://a", "mimeType": "text/plain", "blob": "AA=="},
        {"uri": "mem://b", "mimeType": "text/css", "text": "b"},
    ]);
    assert_eq!(read(&mut pipe, "mem://both").await, expected);
    assert_eq!(
        read(&mut pipe, "t://1").await,
        json!([{"uri": "t://1", "mimeType": "text/markdown", "text": "t"}])
    );
}

// RES-01, RES-02, RES-14
#[tokio::test(start_paused = true)]
async fn listed_resources_and_templates_have_declared_members() {
    let annotations = || {
        wire::Annotations::new()
            .with_audience([wire::Role::User, wire::Role::Assistant])
            .with_priority(0.25)
            .with_last_modified("2026-01-02T03:04:05Z")
    };
    let icon = || {
        wire::Icon::new("https://example.com/i.svg")
            .with_sizes(["any"])
            .with_theme(wire::IconTheme::Dark)
    };
    let meta = || wire::Meta::default().with("com.example/k", "v");
    let resource = Resource::new("mem://a", "a", async || "a")
        .title("A")
        .description("The first.")
        .mime_type("text/plain")
        .size(1)
        .annotations(annotations())
        .icon(icon())
        .meta(meta());
    let template = ResourceTemplate::new("mem://{x}", "x", async || "x")
        .title("X")
        .description("Any.")
        .mime_type("text/plain")
        .annotations(annotations())
        .icon(icon())
        .meta(meta());
    let bare = Resource::new("mem://b", "b", async || "b");
    let server = Server::builder("test", "1")
        .resource(resource)
        .resource(bare)
        .resource_template(template)
        .build()
        .unwrap();
    let mut pipe = Pipe::open(&server);
    let common = json!({
        "mimeType": "text/plain",
        "annotations": {"audience": ["user", "assistant"], "priority": 0.25, "lastModified": "2026-01-02T03:04:05Z"},
        "icons": [{"src": "https://example.com/i.svg", "sizes": ["any"], "theme": "dark"}],
        "_meta": {"com.example/k": "v"},
    });
    let with = |own: Value| {
        let mut all = common.clone();
        all.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
        all
    };
    let first = with(
        json!({"uri": "mem://a", "name": "a", "title": "A", "description": "The first.", "size": 1}),
    );
    let listed = pipe.result("resources/list", json!({})).await;
    assert_eq!(listed["resources"], json!([first, {"uri": "mem://b", "name": "b"}]));
    let listed = pipe.result("resources/templates/list", json!({})).await;
    let only =
        with(json!({"uriTemplate": "mem://{x}", "name": "x", "title": "X", "description": "Any."}));
    assert_eq!(listed["resourceTemplates"], json!([only]));
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Row {
    table: String,
    id: u32,
    limit: Option<u8>,
}

async fn row(Args(row): Args<Row>) -> Option<String> {
    (row.id != 404).then(|| format!("{} {} {:?}", row.table, row.id, row.limit))
}

fn rows() -> ServerBuilder {
    Server::builder("test", "1")
        .resource(Resource::new("db://users/1", "first", async || "the first"))
        .resource_template(ResourceTemplate::new("db://{table}/{id}{?limit}", "row", row))
        .resource_template(ResourceTemplate::new("db://{+any}", "any", async || "any"))
}

// RES-02, RES-03
#[tokio::test(start_paused = true)]
async fn template_variables_are_parsed_from_uri() {
    let server = rows().build().unwrap();
    for version in REVISIONS {
        let mut pipe = Pipe::speaking(&server, version).await;
        for (uri, expected) in [
            ("db://users/7", "users 7 None"),
            ("db://users/7?limit=3", "users 7 Some(3)"),
            ("db://us%20ers%2Fx/7", "us ers/x 7 None"),
            ("db://users/1", "the first"),
            ("db://users/1/more", "any"),
        ] {
            let contents = read(&mut pipe, uri).await;
            assert_eq!(contents, json!([{"uri": uri, "text": expected}]), "{version}");
        }
        for uri in ["db://users/seven", "db://users/-1", "db://users/7?limit=256"] {
            let refusal = pipe.error("resources/read", json!({"uri": uri})).await;
            assert_eq!(refusal["code"], -32602, "{version}: {uri}");
        }
    }
}

// RES-04, RES-05, RES-07, C-05
#[tokio::test(start_paused = true)]
async fn unknown_resource_is_not_found_with_code_of_version() {
    let server = rows()
        .resource(Resource::new("mem://none", "none", async || None::<String>))
        .resource(Resource::new("mem://empty", "empty", async || Vec::<ResourceContents>::new()))
        .resource(Resource::new(
            "mem://gone",
            "gone",
            async || Err::<String, _>(Error::not_found()),
        ))
        .build()
        .unwrap();
    for version in REVISIONS {
        let mut pipe = Pipe::speaking(&server, version).await;
        for uri in [
            "mem://missing",
            "mem://none",
            "mem://empty",
            "mem://gone",
            "db://users/404",
            "other",
            "",
        ] {
            let refusal = pipe.error("resources/read", json!({"uri": uri})).await;
            let code = if version == MODERN { -32602 } else { -32002 };
            let message = format!("unknown resource `{uri}`");
            assert_eq!(
                refusal,
                json!({"code": code, "message": message, "data": {"uri": uri}}),
                "{version}"
            );
        }
        for malformed in [json!({}), json!({"uri": 7}), json!({"uri": null})] {
            let refusal = pipe.error("resources/read", malformed).await;
            assert_eq!(refusal["code"], -32602, "{version}");
            assert_eq!(refusal.get("data"), None, "{version}");
        }
    }
}

// RES-01, RPC-16
#[tokio::test(start_paused = true)]
async fn server_without_resources_does_not_declare_them() {
    let template = ResourceTemplate::new("t://{x}", "t", async || "t");
    for (server, offered) in [
        (Server::builder("test", "1").build().unwrap(), false),
        (Server::builder("test", "1").advertise_resources().build().unwrap(), true),
        (Server::builder("test", "1").resource_template(template).build().unwrap(), true),
    ] {
        for version in REVISIONS {
            let mut pipe = Pipe::open(&server);
            let hello = match version {
                MODERN => pipe.result("server/discover", json!({})).await,
                _ => pipe.legacy(version).await,
            };
            let declared = json!({"subscribe": true, "listChanged": true});
            assert_eq!(
                hello["capabilities"].get("resources"),
                offered.then_some(&declared),
                "{version}"
            );
            for method in ["resources/list", "resources/templates/list"] {
                let answer = pipe.ask(method, json!({})).await;
                assert_eq!(answer.get("result").is_some(), offered, "{version}: {method}");
                assert!(offered || answer["error"]["code"] == -32601, "{version}: {method}");
            }
            let missing = if version == MODERN { -32602 } else { -32002 };
            let refusal = pipe.error("resources/read", json!({"uri": "mem://a"})).await;
            assert_eq!(refusal["code"], if offered { missing } else { -32601 }, "{version}");
            for method in ["resources/subscribe", "resources/unsubscribe"] {
                let answer = pipe.ask(method, json!({"uri": "mem://a"})).await;
                let known = offered && version != MODERN;
                assert_eq!(
                    answer["error"]["code"] != -32601,
                    known,
                    "{version}: {method}: {answer}"
                );
            }
        }
    }
}

// RES-12, RES-13
#[test]
fn invalid_uri_or_template_fails_build() {
    let why = |builder: ServerBuilder| builder.build().unwrap_err().to_string();
    let resource = |uri: &str| Resource::new(uri, "r", async || "r");
    for uri in ["", "notes", "/etc/hosts", "1a://x", "a b://x"] {
        let why = why(Server::builder("t", "1").resource(resource(uri)));
        assert!(why.contains("has no scheme"), "{uri}: {why}");
    }
    let twice = why(Server::builder("t", "1").resource(resource("a:b")).resource(resource("a:b")));
    assert!(twice.starts_with("resource `a:b`: this name is already registered"), "{twice}");
    let template = |text: &str| ResourceTemplate::new(text, "r", async || "r");
    for text in ["t://{", "t://{}", "t://{a b}", "t://{a:0}", "t://}"] {
        let why = why(Server::builder("t", "1").resource_template(template(text)));
        assert!(why.contains("the URI template is invalid at byte"), "{text}: {why}");
    }
}
