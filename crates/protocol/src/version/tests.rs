//! Tests that a version in an existing era is one constant: they add and serve two invented
//! versions.

use std::{
    future::{Future, ready},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use bytes::Bytes;
use http::HeaderMap;
use outlive_wire::{
    CacheHints, CacheScope, CallToolResult, ClientCapabilities, Implementation, Method, RawJson,
    ServerCapabilities, Version,
};
use serde_json::{Value, json, value::to_raw_value};

use super::{
    Era, VERSIONS, VersionRules, VersionSet,
    rules::{V2025_11_25, V2026_07_28},
};
use crate::{
    Accepted, Call, CallFuture, ClientNotification, Clock, CompletionOutcome, Endpoint,
    ExternalEvents, Limits, MessageContext, MethodResult, Outcome, Principal, Profile, Run, Seal,
    ServerDescription, Service, Session, SessionEvents, StoredSession,
    era::client::{Declared, Outgoing, client_codec},
};

/// An invented legacy version that has batches and no `ping`.
static INVENTED_LEGACY: VersionRules = VersionRules {
    version: Version::from_static("2026-02-28"),
    methods: &[Method::ToolsCall, Method::Initialize, Method::ToolsList],
    batches: true,
    ..V2025_11_25
};

/// An invented modern version that has `ping`.
static INVENTED_MODERN: VersionRules = VersionRules {
    version: Version::from_static("2031-01-01"),
    methods: &[Method::ToolsCall, Method::Discover, Method::Ping],
    ..V2026_07_28
};

#[test]
fn versions_are_listed_newest_first() {
    let dates = VERSIONS.map(|rules| rules.version);
    assert!(dates.is_sorted_by(|newer, older| newer > older), "{dates:?}");
    assert!(Version::ALL.iter().rev().eq(&dates));
}

#[test]
fn invented_legacy_version_is_negotiated_and_follows_its_rules() {
    let (with, without) = servers();
    let (result, session) = with.shake_hands("2026-02-28");
    assert_eq!(result["protocolVersion"], "2026-02-28");
    assert_eq!(without.shake_hands("2026-02-28").0["protocolVersion"], "2025-11-25");

    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "t"}});
    let response = with.response(&call, Some(&session));
    // The codec compares dates, so a newer version has the members that 2025-06-18 added.
    assert_eq!(response["result"]["structuredContent"], json!({"a": 1}));
    let ping = json!({"jsonrpc": "2.0", "id": 3, "method": "ping"});
    assert_eq!(with.response(&ping, Some(&session))["error"]["code"], -32601);

    let batch = json!([call]);
    assert!(matches!(with.accept(&batch, Some(&session)), Accepted::Batch(_)));
    let (_, published) = with.shake_hands("2025-11-25");
    assert!(matches!(with.accept(&batch, Some(&published)), Accepted::Refused(_)));
    assert_eq!(with.response(&ping, Some(&published))["result"], json!({}));
}

#[test]
fn session_of_invented_version_is_restored_only_if_supported() {
    let (with, without) = servers();
    let (_, session) = with.shake_hands("2026-02-28");
    let stored = StoredSession::of(&session).unwrap();
    let restored = stored.restore(&Principal::LOCAL, with.0.profile()).unwrap();
    assert_eq!(restored.rules().version, INVENTED_LEGACY.version);
    assert!(stored.restore(&Principal::LOCAL, without.0.profile()).is_none());
}

#[test]
fn invented_modern_version_works_with_published_one() {
    let (with, without) = servers();
    let request = |method: &str, version: &str| {
        let meta = json!({"io.modelcontextprotocol/protocolVersion": version,
            "io.modelcontextprotocol/clientCapabilities": {}});
        json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"name": "t", "_meta": meta}})
    };
    let discovered = with.response(&request("server/discover", "2031-01-01"), None);
    assert_eq!(discovered["result"]["supportedVersions"], json!(["2031-01-01", "2026-07-28"]));
    for version in ["2031-01-01", "2026-07-28"] {
        let called = with.response(&request("tools/call", version), None);
        assert_eq!(called["result"]["resultType"], "complete", "{version}");
    }
    let pinged = with.response(&request("ping", "2031-01-01"), None);
    assert_eq!(pinged["result"]["resultType"], "complete");
    assert_eq!(with.response(&request("ping", "2026-07-28"), None)["error"]["code"], -32601);

    let refused = without.response(&request("tools/call", "2031-01-01"), None);
    assert_eq!(refused["error"]["code"], -32022);
    assert_eq!(refused["error"]["data"]["supported"], json!(["2026-07-28"]));
}

#[test]
fn client_requests_name_invented_version() {
    let me = Declared::new(
        Implementation::new("client", "1"),
        ClientCapabilities::default(),
        false,
        false,
    );
    let request = Outgoing {
        id: Some(1),
        method: Method::ToolsList.as_str(),
        params: "{}",
        ..Outgoing::default()
    };
    for (rules, meta) in [
        (&INVENTED_LEGACY, json!(null)),
        (
            &INVENTED_MODERN,
            json!({"io.modelcontextprotocol/protocolVersion": "2031-01-01",
                "io.modelcontextprotocol/clientCapabilities": {}}),
        ),
    ] {
        let (mut written, mut headers) = (Vec::new(), HeaderMap::new());
        let codec = client_codec(rules.era);
        codec.write(rules, &request, &me, &mut written);
        codec.headers(rules, &request, &mut headers);
        let written: Value = serde_json::from_slice(&written).unwrap();
        assert_eq!(written["params"]["_meta"], meta, "{rules:?}");
        assert_eq!(headers["mcp-protocol-version"], rules.version.as_str());
    }
}

#[test]
fn version_set_is_sorted_newest_first() {
    let set: VersionSet = [Version::V2025_03_26, Version::V2025_11_25].into_iter().collect();
    let dates: Vec<_> = set.in_era(Era::Legacy).map(|rules| rules.version).collect();
    assert_eq!(dates, [Version::V2025_11_25, Version::V2025_03_26]);
    assert!(set.newest(Era::Modern).is_none());
    assert!([Version::from_static("2031-01-01")].into_iter().collect::<VersionSet>().is_empty());
}

/// Creates a server with the two invented versions, and one without.
fn servers() -> (TestServer, TestServer) {
    let invented = [&INVENTED_MODERN, &INVENTED_LEGACY];
    let with = VersionSet::from_rules(VERSIONS.into_iter().chain(invented));
    (TestServer::new(with), TestServer::new(VersionSet::all()))
}

struct TestServer(Endpoint);

impl TestServer {
    fn new(versions: VersionSet) -> Self {
        let info = Implementation::new("server", "1");
        let (clock, seal) = (Arc::new(NoClock), Seal::random().unwrap());
        let profile = Profile::new(info, versions, Limits::default(), clock, seal, false);
        Self(Endpoint::new(Arc::new(TestService(Arc::new(profile)))))
    }

    fn accept(&self, message: &Value, session: Option<&Arc<Session>>) -> Accepted {
        let cx =
            MessageContext { session: session.cloned(), ..MessageContext::of(Principal::LOCAL) };
        self.0.accept(&Bytes::from(message.to_string()), cx)
    }

    fn response(&self, message: &Value, session: Option<&Arc<Session>>) -> Value {
        match self.accept(message, session) {
            Accepted::Call(run) => last(run),
            Accepted::Refused(reply) => serde_json::from_slice(&reply.body).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    fn shake_hands(&self, version: &str) -> (Value, Arc<Session>) {
        let params = json!({"protocolVersion": version, "capabilities": {},
            "clientInfo": {"name": "client", "version": "1"}});
        let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
        match self.accept(&hello, None) {
            Accepted::Handshake(run, session) => (last(run)["result"].clone(), session),
            other => panic!("{other:?}"),
        }
    }
}

/// Returns the response of a run whose handler completes at once.
fn last(mut run: Run) -> Value {
    let Poll::Ready(Some(message)) = run.poll_message(&mut Context::from_waker(Waker::noop()))
    else {
        panic!("the handler did not complete at once");
    };
    let mut out = Vec::new();
    run.encode(message, &mut out);
    serde_json::from_slice(&out).unwrap()
}

struct TestService(Arc<Profile>);

impl Service for TestService {
    fn profile(&self) -> &Arc<Profile> {
        &self.0
    }

    fn knows_method(&self, _name: &str) -> bool {
        false
    }

    fn start(self: Arc<Self>, call: Arc<Call>) -> CallFuture {
        let result = match call.method() {
            Some(Method::Initialize | Method::Discover) => {
                MethodResult::Identity(Box::new(ServerDescription {
                    info: self.0.info.clone(),
                    capabilities: ServerCapabilities::default(),
                    tasks: None,
                    instructions: None,
                    cache: CacheHints { ttl_ms: 0, cache_scope: CacheScope::Private },
                }))
            }
            Some(Method::ToolsCall) => {
                let mut result = CallToolResult::text("a is 1");
                result.structured_content = to_raw_value(&json!({"a": 1})).ok();
                MethodResult::Tool(result)
            }
            _ => MethodResult::Empty,
        };
        Box::pin(ready(Ok(Outcome::Complete(result))))
    }

    fn notified(&self, _notice: ClientNotification<'_>) {}

    fn shut_down(
        self: Arc<Self>,
        calls: Pin<Box<dyn Future<Output = ()> + Send>>,
        _patience: Duration,
    ) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        calls
    }
}

impl SessionEvents for TestService {
    fn session_opened(&self, _session: &Arc<Session>) {}

    fn session_closed(&self, _session: &Arc<Session>) {}
}

impl ExternalEvents for TestService {
    fn knows_token(&self, _token: &str) -> bool {
        false
    }

    fn complete(
        self: Arc<Self>,
        _token: &str,
        _value: RawJson,
    ) -> Pin<Box<dyn Future<Output = CompletionOutcome> + Send>> {
        Box::pin(ready(CompletionOutcome::Unknown))
    }
}

#[derive(Debug)]
struct NoClock;

impl Clock for NoClock {
    fn now(&self) -> Instant {
        unreachable!("every handler completes at once")
    }

    fn sleep(&self, _span: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        unreachable!("every handler completes at once")
    }
}
