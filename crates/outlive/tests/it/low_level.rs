//! The low-level API: custom methods, notifications, extensions, layers and sessions.

mod transports; // custom transports and in-memory connections

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use outlive::{
    server::{
        Args, CallToolResult, Cx, Json, Meta, ProtocolError, Server, Tool,
        extract::RawParams,
        layer::{BoxCallService, BoxError, Call, Outcome, Session},
    },
    wire::RawJson,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tower_layer::Layer;
use tower_service::Service;

use crate::support::pipe::{LEGACY, MODERN, Pipe, REVISIONS, text};

#[derive(Deserialize, JsonSchema)]
struct Double {
    n: i64,
}

// RPC-09, RPC-15
#[tokio::test(start_paused = true)]
async fn custom_method_is_served_in_every_era() {
    let server = Server::builder("test", "1")
        .custom_method("com.example/double", async |Args(double): Args<Double>| {
            Json(json!({"n": double.n * 2}))
        })
        .custom_method("com.example/raw", async |RawParams(raw): RawParams| raw)
        .custom_method("com.example/nothing", async || ())
        .custom_method("com.example/list", async || Json(json!([1])))
        .build()
        .unwrap();
    for version in REVISIONS {
        let mut pipe = Pipe::speaking(&server, version).await;
        let doubled = pipe.result("com.example/double", json!({"n": 4})).await;
        assert_eq!(doubled["n"], 8, "{version}");
        assert_eq!(doubled.get("resultType").is_some(), version == MODERN, "{version}");
        let refusal = pipe.error("com.example/double", json!({"n": "x"})).await;
        assert_eq!(refusal["code"], -32602, "{version}");
        let raw = pipe.result("com.example/raw", json!({"b": 1, "a": [2]})).await;
        assert_eq!((&raw["b"], &raw["a"]), (&json!(1), &json!([2])), "{version}");
        let nothing = pipe.result("com.example/nothing", json!({})).await;
        assert_eq!(nothing.get("resultType").is_some(), version == MODERN, "{version}");
        assert!(version == MODERN || nothing == json!({}), "{version}: {nothing}");
        // A result must be an object.
        assert_eq!(pipe.error("com.example/list", json!({})).await["code"], -32603, "{version}");
        assert_eq!(pipe.error("com.example/unknown", json!({})).await["code"], -32601, "{version}");
    }
}

// RPC-09, META-07, RPC-30
#[tokio::test(start_paused = true)]
async fn custom_result_keeps_its_own_members() {
    let own = r#"{"resultType":"com.example/later","big":123456789012345678901234567890,"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"upstream","version":"9"},"com.example/k":1}}"#;
    let own: RawJson = serde_json::from_str(own).unwrap();
    let upstream =
        Meta::default().with(Meta::SERVER_INFO, json!({"name": "upstream", "version": "9"}));
    let relayed = CallToolResult::text("x").with_meta(upstream);
    let server = Server::builder("test", "1")
        .custom_method("own/result", move || std::future::ready(own.clone()))
        .tool(Tool::new("relay", move || std::future::ready(relayed.clone())))
        .build()
        .unwrap();
    let mut pipe = Pipe::open(&server);
    for (method, params) in [("own/result", json!({})), ("tools/call", json!({"name": "relay"}))] {
        pipe.send(method, params).await;
        let line = pipe.read_line().await.unwrap();
        assert_eq!(line.matches("serverInfo").count(), 1, "{line}");
        assert!(line.contains("upstream"), "{line}");
        if method == "own/result" {
            assert!(line.contains(r#""resultType":"com.example/later""#), "{line}");
            assert!(line.contains("123456789012345678901234567890"), "{line}");
            assert!(line.contains(r#""com.example/k":1"#), "{line}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn custom_method_overrides_built_in_method() {
    let call = async |RawParams(raw): RawParams, cx: Cx| {
        let params: Value = serde_json::from_str(raw.get()).unwrap();
        let text = format!("{} by hand, from {}", params["name"], cx.call().rules().version);
        Json(json!({"content": [{"type": "text", "text": text}]}))
    };
    let server = Server::builder("test", "1")
        .tool(Tool::new("t", async || "never"))
        .custom_method("tools/call", call)
        .custom_method("prompts/get", async || {
            Err::<Json<Value>, _>(ProtocolError::invalid_params("no prompts today"))
        })
        .build()
        .unwrap();
    for version in REVISIONS {
        let mut pipe = Pipe::speaking(&server, version).await;
        let result = pipe.result("tools/call", json!({"name": "anything"})).await;
        assert_eq!(text(&result), format!("\"anything\" by hand, from {version}"));
        assert_eq!(result.get("resultType").is_some(), version == MODERN);
        // The other methods are unchanged.
        assert_eq!(
            pipe.result("tools/list", json!({})).await["tools"][0]["name"],
            "t",
            "{version}"
        );
        let refusal = pipe.error("prompts/get", json!({"name": "p"})).await;
        assert_eq!(refusal, json!({"code": -32602, "message": "no prompts today"}), "{version}");
    }
}

#[tokio::test(start_paused = true)]
async fn custom_notification_reaches_its_handler() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let note = Arc::clone(&seen);
    let server = Server::builder("test", "1")
        .on_notification("com.example/hello", move |notice| {
            let session = notice.session.map(|session| session.rules().version.as_str());
            note.lock().unwrap().push((
                notice.name.to_owned(),
                notice.params.to_owned(),
                notice.principal.to_string(),
                session,
            ));
        })
        .build()
        .unwrap();
    for version in REVISIONS {
        let mut pipe = Pipe::speaking(&server, version).await;
        pipe.notify("com.example/hello", json!({"n": 1})).await;
        pipe.notify("com.example/other", json!({})).await;
        pipe.send_raw(b"{\"jsonrpc\":\"2.0\",\"method\":\"com.example/hello\"}\n").await;
        pipe.quiet().await;
        let session = (version != MODERN).then_some(version);
        let expected = ["{\"n\":1}", "{}"].map(|params| {
            ("com.example/hello".to_owned(), params.to_owned(), "local".to_owned(), session)
        });
        assert_eq!(std::mem::take(&mut *seen.lock().unwrap()), expected, "{version}");
    }
}

#[tokio::test(start_paused = true)]
async fn custom_notifications_are_sent_before_response() {
    let tell = async |cx: Cx| {
        cx.notify("com.example/step", json!({"n": 1}))?;
        assert!(cx.notify("com.example/step", 7).is_err(), "parameters are an object");
        cx.notify("com.example/step", json!({"n": 2}))?;
        Ok::<_, outlive::server::Error>("done")
    };
    let server = Server::builder("test", "1").tool(Tool::new("tell", tell)).build().unwrap();
    for version in REVISIONS {
        let mut pipe = Pipe::speaking(&server, version).await;
        let id = pipe.send("tools/call", json!({"name": "tell"})).await;
        let messages = pipe.read_to(id).await;
        assert_eq!(messages.len(), 3, "{version}");
        for (message, n) in messages.iter().zip([1, 2]) {
            assert_eq!(
                *message,
                json!({"jsonrpc": "2.0", "method": "com.example/step", "params": {"n": n}})
            );
        }
    }
}

// VER-10, VER-12
#[tokio::test(start_paused = true)]
async fn extensions_are_declared_only_when_enabled() {
    let bare = Server::builder("test", "1").build().unwrap();
    let extended = Server::builder("test", "1")
        .extension("com.example/maps", json!({"zoom": 3}))
        .extension("io.modelcontextprotocol/ui", json!({}))
        .experimental("draft", json!({}))
        .build()
        .unwrap();
    for version in REVISIONS {
        for (server, switched_on) in [(&bare, false), (&extended, true)] {
            let mut pipe = Pipe::open(server);
            let hello = match version {
                MODERN => pipe.result("server/discover", json!({})).await,
                _ => pipe.legacy(version).await,
            };
            let capabilities = &hello["capabilities"];
            let extensions =
                json!({"com.example/maps": {"zoom": 3}, "io.modelcontextprotocol/ui": {}});
            assert_eq!(
                capabilities.get("extensions"),
                switched_on.then_some(&extensions),
                "{version}"
            );
            assert_eq!(
                capabilities.get("experimental"),
                switched_on.then_some(&json!({"draft": {}})),
                "{version}"
            );
        }
    }
}

// VER-10, META-10, META-11
#[test]
fn extension_name_without_valid_prefix_fails_build() {
    let why = |name: &str| {
        Server::builder("t", "1")
            .extension(name, json!({}))
            .build()
            .map(drop)
            .map_err(|error| error.to_string())
    };
    for fine in [
        "com.example/maps",
        "com.example.mcp/x",
        "dev.outlive/task-partials",
        "io.modelcontextprotocol/tasks",
        "a/b_c.d-e",
    ] {
        assert_eq!(why(fine), Ok(()), "{fine}");
    }
    for wrong in [
        "maps",
        "",
        "/maps",
        "1com/maps",
        "com..example/maps",
        "com.example-/maps",
        "com.example/-x",
        "dev.mcp/x",
        "com.modelcontextprotocol.x/y",
        "mcp.dev/x",
    ] {
        let why = why(wrong).unwrap_err();
        assert!(why.contains(&format!("extension `{wrong}`")), "{wrong}: {why}");
    }
    for settings in [json!(true), json!([]), json!(null)] {
        let build =
            Server::builder("t", "1").extension("com.example/maps", settings.clone()).build();
        assert!(build.unwrap_err().to_string().contains("must be an object"), "{settings}");
        let build = Server::builder("t", "1").experimental("draft", settings.clone()).build();
        assert!(build.unwrap_err().to_string().contains("must be an object"), "{settings}");
    }
}

/// A layer that records calls and rejects some of them.
#[derive(Clone)]
struct Watch {
    name: &'static str,
    seen: Arc<Mutex<Vec<String>>>,
}

#[derive(Clone)]
struct Watching<S> {
    watch: Watch,
    inner: S,
}

impl<S> Layer<S> for Watch {
    type Service = Watching<S>;

    fn layer(&self, inner: S) -> Watching<S> {
        Watching { watch: self.clone(), inner }
    }
}

impl<S> Service<Arc<Call>> for Watching<S>
where
    S: Service<Arc<Call>, Response = Outcome, Error = BoxError>,
    S::Future: Send + 'static,
{
    type Response = Outcome;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Outcome, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, call: Arc<Call>) -> Self::Future {
        let Watch { name, seen } = self.watch.clone();
        let note = move |what: &str, call: &Call| {
            seen.lock().unwrap().push(format!("{name} {what} {}", call.method_name()))
        };
        if call.params().contains("forbidden") {
            return Box::pin(async { Err(ProtocolError::invalid_params("turned away").into()) });
        }
        if call.params().contains("broken") {
            return Box::pin(async { Err("password is hunter2".into()) });
        }
        note("before", &call);
        let work = self.inner.call(Arc::clone(&call));
        Box::pin(async move {
            let outcome = work.await;
            note(if outcome.is_ok() { "after" } else { "refused" }, &call);
            outcome
        })
    }
}

#[tokio::test(start_paused = true)]
async fn layers_wrap_every_call_with_last_one_outermost() {
    let seen = Arc::<Mutex<Vec<String>>>::default();
    let watch = |name| Watch { name, seen: Arc::clone(&seen) };
    let server = Server::builder("test", "1")
        .tool(Tool::new("t", async || "ran"))
        .custom_method("own/method", async || ())
        .layer(watch("inner"))
        .layer(watch("outer"))
        .build()
        .unwrap();
    let take = || std::mem::take(&mut *seen.lock().unwrap());
    for version in REVISIONS {
        let mut pipe = Pipe::speaking(&server, version).await;
        take();
        assert_eq!(text(&pipe.call("t", json!({})).await), "ran", "{version}");
        let around = |method: &str, end: &str| {
            [("outer", "before"), ("inner", "before"), ("inner", end), ("outer", end)]
                .map(|(who, what)| format!("{who} {what} {method}"))
        };
        assert_eq!(take(), around("tools/call", "after"), "{version}");
        pipe.result("own/method", json!({})).await;
        assert_eq!(take(), around("own/method", "after"), "{version}");
        pipe.error("tools/call", json!({"name": "none"})).await;
        assert_eq!(take(), around("tools/call", "refused"), "{version}");
        // An unknown method does not reach the layers.
        pipe.error("no/such/method", json!({})).await;
        assert_eq!(take(), Vec::<String>::new(), "{version}");
        let refusal = pipe.error("tools/call", json!({"name": "forbidden"})).await;
        assert_eq!(refusal, json!({"code": -32602, "message": "turned away"}), "{version}");
        let refusal = pipe.error("tools/call", json!({"name": "broken"})).await;
        assert_eq!(refusal, json!({"code": -32603, "message": "internal error"}), "{version}");
    }
    // The service type that a layer wraps can be named.
    fn named(_: impl Layer<BoxCallService>) {}
    named(watch("x"));
}

#[tokio::test(start_paused = true)]
async fn session_hooks_run_on_open_and_close() {
    let log = Arc::<Mutex<Vec<String>>>::default();
    let note = |what: &'static str| {
        let log = Arc::clone(&log);
        move |session: &Arc<Session>| {
            log.lock().unwrap().push(format!("{what} {}", session.rules().version))
        }
    };
    let server = Server::builder("test", "1")
        .on_session_open(note("open"))
        .on_session_close(note("close"))
        .build()
        .unwrap();
    let take = || std::mem::take(&mut *log.lock().unwrap());
    for version in LEGACY {
        let mut pipe = Pipe::speaking(&server, version).await;
        assert_eq!(take(), [format!("open {version}")]);
        pipe.legacy("2025-06-18").await;
        assert_eq!(
            take(),
            [format!("close {version}"), "open 2025-06-18".to_owned()],
            "after another handshake"
        );
        pipe.finish().await;
        pipe.read_to_end().await;
        tokio::task::yield_now().await;
        assert_eq!(take(), ["close 2025-06-18"]);
    }
    let mut pipe = Pipe::open(&server);
    pipe.result("server/discover", json!({})).await;
    pipe.finish().await;
    pipe.read_to_end().await;
    assert_eq!(take(), Vec::<String>::new(), "modern clients have no session");
}

// VER-14
#[tokio::test(start_paused = true)]
async fn session_state_is_separate_per_session() {
    async fn count(session: Option<Arc<Session>>) -> String {
        match session {
            Some(session) => {
                session.state(AtomicUsize::default).fetch_add(1, Ordering::Relaxed).to_string()
            }
            None => "no session".to_owned(),
        }
    }
    let server = Server::builder("test", "1").tool(Tool::new("count", count)).build().unwrap();
    let mut first = Pipe::speaking(&server, "2025-11-25").await;
    let mut second = Pipe::speaking(&server, "2024-11-05").await;
    for n in ["0", "1", "2"] {
        assert_eq!(text(&first.call("count", json!({})).await), n);
    }
    assert_eq!(text(&second.call("count", json!({})).await), "0");
    let answer = first.modern("tools/call", json!({"name": "count"})).await;
    assert_eq!(text(&answer["result"]), "no session");
    first.legacy("2025-11-25").await;
    assert_eq!(text(&first.call("count", json!({})).await), "0", "a new session has new state");
}

// TRACE-01, TRACE-02, META-14, META-16
#[tokio::test(start_paused = true)]
async fn handler_receives_complete_request_meta() {
    let show = async |cx: Cx| Json(Value::Object(cx.meta().unwrap_or_default().0));
    let server = Server::builder("test", "1").custom_method("own/meta", show).build().unwrap();
    let meta = json!({
        "traceparent": "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01",
        "tracestate": "vendor=1",
        "baggage": "user=7",
        "com.example/own": {"a": [1, null]},
    });
    for version in REVISIONS {
        let mut pipe = Pipe::speaking(&server, version).await;
        let seen = pipe.result("own/meta", json!({"_meta": meta})).await;
        for (key, value) in meta.as_object().unwrap() {
            assert_eq!(&seen[key], value, "{version}");
        }
    }
}

// META-07
#[tokio::test(start_paused = true)]
async fn server_info_in_results_can_be_disabled() {
    let builder = Server::builder("test", "1").server_info_in_results(false);
    let result = CallToolResult::text("x").with_meta(Meta::default().with("com.example/k", 1));
    let tool = Tool::new("t", move || std::future::ready(result.clone()));
    let server = builder.tool(tool).build().unwrap();
    let mut pipe = Pipe::open(&server);
    for (method, params) in [("server/discover", json!({})), ("tools/list", json!({}))] {
        let result = pipe.result(method, params).await;
        assert_eq!(result["_meta"], json!({}), "{method}");
        assert_eq!(result["resultType"], "complete", "{method}");
    }
    assert_eq!(pipe.call("t", json!({})).await["_meta"], json!({"com.example/k": 1}));
    assert_eq!(Pipe::open(&server).legacy("2025-11-25").await["serverInfo"]["name"], "test");
}

// RPC-12, VER-19
#[tokio::test(start_paused = true)]
async fn instructions_are_sent_only_if_set() {
    for (server, expected) in [
        (Server::builder("t", "1").build().unwrap(), None),
        (
            Server::builder("t", "1").instructions("Be brief.").build().unwrap(),
            Some(json!("Be brief.")),
        ),
    ] {
        let mut pipe = Pipe::open(&server);
        assert_eq!(
            pipe.result("server/discover", json!({})).await.get("instructions"),
            expected.as_ref()
        );
        for version in LEGACY {
            assert_eq!(
                pipe.legacy(version).await.get("instructions"),
                expected.as_ref(),
                "{version}"
            );
        }
    }
}
