//! Token sources: when the client requests a token and which responses the source sees.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use outlive::client::{
    ClientError, Error, ServerErrorKind,
    transport::{Token, TokenError, TokenRequest, TokenResponse, TokenSource},
};
use serde_json::{Value, json};

use super::{
    kit::builder,
    script::{HttpScript, discovered, empty, initialized, ok, said, with_status},
};

/// A source that has a token only after a request without one was rejected.
#[derive(Clone, Default)]
struct Late {
    heard: Arc<Mutex<Vec<String>>>,
    /// Duration of the login.
    takes: Duration,
    fails: bool,
}

impl TokenSource for Late {
    async fn token(&self, request: &TokenRequest<'_>) -> Result<Option<Token>, TokenError> {
        let mut heard = self.heard.lock().unwrap();
        heard.push(format!("{} {}", request.method, request.url.ends_with("/mcp")));
        let has_one = heard.iter().any(|it| it.starts_with("refused"));
        Ok(has_one.then(|| Token::dpop("t-1", "proof")))
    }

    async fn answered(&self, answer: &TokenResponse<'_>) -> Result<bool, TokenError> {
        let line = match answer.challenges().first() {
            Some(challenge) => {
                let scope = challenge.get("scope").unwrap_or_default();
                format!("refused {} {} {scope}", answer.status.as_u16(), challenge.scheme)
            }
            None => format!("told {:?} {}", answer.dpop_nonce(), answer.attempt),
        };
        self.heard.lock().unwrap().push(line);
        if self.fails {
            return Err(TokenError::new("no user is present; log in first"));
        }
        if !self.takes.is_zero() {
            tokio::time::pause();
            tokio::time::advance(self.takes).await;
            tokio::time::resume();
        }
        Ok(true)
    }
}

async fn guarded() -> HttpScript {
    HttpScript::new(|seen, _| async move {
        match (seen.header("authorization"), seen.method()) {
            (Some("DPoP t-1"), "server/discover") if seen.header("dpop") == Some("proof") => {
                ok(&seen, &discovered())
            }
            (Some("DPoP t-1"), _) => {
                let headers = "content-type: application/json\r\ndpop-nonce: n-1\r\n";
                let body = json!({"jsonrpc": "2.0", "id": seen.id(), "result": said("hello")});
                with_status(200, headers, &body)
            }
            _ => with_status(401, "www-authenticate: DPoP scope=\"a b\"\r\n", &json!({})),
        }
    })
    .await
}

// ACL-03, ACL-30, VER-47
#[tokio::test]
async fn token_source_sees_rejection_and_request_is_retried() {
    let (peer, source) = (guarded().await, Late::default());
    let client = builder().token_source(source.clone()).connect(peer.url.as_str()).await.unwrap();
    client.call_tool("t", json!({})).await.unwrap();
    assert_eq!(
        *source.heard.lock().unwrap(),
        ["POST true", "refused 401 DPoP a b", "POST true", "POST true", "told Some(\"n-1\") 1"]
    );
    // The client did not try another era, and did not repeat an accepted request.
    assert_eq!(peer.all("server/discover").len(), 2);
    assert_eq!(peer.all("tools/call").len(), 1);
}

// ACL-30, RPC-04
#[tokio::test]
async fn request_retried_after_rejection_has_new_id_and_same_version() {
    for (legacy, status) in [(false, 401), (false, 403), (true, 401), (true, 403)] {
        let peer = HttpScript::new(move |seen, times| async move {
            match (seen.verb.as_str(), seen.method()) {
                ("GET", _) => empty(405),
                (_, "server/discover") if legacy => empty(404),
                (_, "server/discover") => ok(&seen, &discovered()),
                (_, "initialize") => ok(&seen, &initialized("2025-11-25")),
                (_, "notifications/initialized") => empty(202),
                _ if times == 1 => {
                    let challenge = "www-authenticate: Bearer error=\"insufficient_scope\"\r\n";
                    with_status(status, challenge, &json!({}))
                }
                _ => ok(&seen, &said("hello")),
            }
        })
        .await;
        let client =
            builder().token_source(Late::default()).connect(peer.url.as_str()).await.unwrap();
        client.call_tool("t", json!({"a": 1})).await.unwrap();
        let [first, second] = &peer.all("tools/call")[..] else {
            panic!("the request is sent twice")
        };
        assert_eq!(first.header("mcp-protocol-version"), second.header("mcp-protocol-version"));
        assert_eq!(first.body["params"], second.body["params"]);
        let mut ids: Vec<_> = peer.seen.lock().unwrap().iter().map(|it| it.id().clone()).collect();
        ids.retain(|id| !id.is_null());
        let count = ids.len();
        ids.sort_by_key(Value::as_u64);
        ids.dedup();
        assert_eq!(ids.len(), count, "no request ID was used twice: {ids:?}");
        assert_eq!(peer.all("initialize").len(), usize::from(legacy), "no other era was tried");
    }
}

#[tokio::test]
async fn slow_login_is_awaited() {
    let source = Late { takes: Duration::from_secs(3600), ..Late::default() };
    let peer = guarded().await;
    let client = builder().token_source(source).connect(peer.url.as_str()).await.unwrap();
    client.call_tool("t", json!({})).await.unwrap();
}

#[tokio::test]
async fn failing_token_source_returns_its_remedy() {
    let (peer, source) = (guarded().await, Late { fails: true, ..Late::default() });
    let error = builder().token_source(source).connect(peer.url.as_str()).await.unwrap_err();
    assert!(matches!(error, Error::Client(ClientError::NoToken(_))), "{error:?}");
    assert_eq!(error.to_string(), "no user is present; log in first");
    assert!(!error.may_have_executed() && !error.is_transient());
}

#[tokio::test]
async fn rejected_static_token_is_sent_once() {
    let peer = guarded().await;
    let error = builder().token("other").connect(peer.url.as_str()).await.unwrap_err();
    assert_eq!(error.kind(), Some(ServerErrorKind::Unauthorized), "{error}");
    assert_eq!(peer.seen.lock().unwrap().len(), 1);
}
