//! Table of invalid tokens: each with its exact status, header and error. None of them reaches a
//! handler. The tables of proofs and introspection are in `dpop` and `introspection`.

use outlive::server::http::{AuthDecision, Authenticator as _};
use outlive_auth::jose::{Algorithm, SigningKey, encode_base64url};
use ring::hmac;
use serde_json::{Value, json};

use super::support::{
    METADATA, Protected, RESOURCE, Sent, Signer, StandingClock, builder, changed,
};

const NO_TOKEN: &str = "Bearer resource_metadata=\"https://mcp.example/.well-known/oauth-protected-resource/mcp\", scope=\"mcp\"";
const INVALID: &str = "Bearer error=\"invalid_token\", error_description=\"the token is not valid for this server; get a new one\", resource_metadata=\"https://mcp.example/.well-known/oauth-protected-resource/mcp\", scope=\"mcp\"";

fn invalid_request(why: &str) -> String {
    format!(
        "Bearer error=\"invalid_request\", error_description=\"{why}\", resource_metadata=\"{METADATA}\", scope=\"mcp\""
    )
}

/// Returns a token with this header, these claims and this signature.
fn written(header: Value, claims: Value, sign: impl Fn(&[u8]) -> Vec<u8>) -> String {
    let signed = format!(
        "{}.{}",
        encode_base64url(header.to_string()),
        encode_base64url(claims.to_string())
    );
    let signature = encode_base64url(sign(signed.as_bytes()));
    format!("{signed}.{signature}")
}

// ARS-03, ARS-05, ARS-06, ARS-10, ARS-12
#[tokio::test]
async fn invalid_token_gets_its_challenge_and_reaches_no_handler() {
    let clock = StandingClock::new();
    let signer = Signer::new(&clock);
    let server = Protected::start(&signer).await;
    let now = clock.seconds();
    let stranger = SigningKey::generate(Algorithm::Es256).unwrap().with_id("k1");
    let unknown = SigningKey::generate(Algorithm::Es256).unwrap().with_id("k9");
    let good = signer.token(json!({}));
    let [header, payload, signature] = good.split('.').collect::<Vec<_>>().try_into().unwrap();
    let other_payload =
        encode_base64url(changed(signer.claims(), json!({"sub": "eve"})).to_string());
    // The public key, used as the secret of a symmetric algorithm.
    let public = signer.key.public().to_json();
    let confused = |name: &str| {
        written(json!({"alg": name, "typ": "at+jwt", "kid": "k1"}), signer.claims(), |signed| {
            let key = hmac::Key::new(hmac::HMAC_SHA256, public.as_bytes());
            hmac::sign(&key, signed).as_ref().to_vec()
        })
    };
    let unsigned = |name: &str| {
        written(json!({"alg": name, "typ": "at+jwt", "kid": "k1"}), signer.claims(), |_| Vec::new())
    };
    let embedded = stranger.sign_with_key("at+jwt", &signer.claims()).unwrap();

    let bearer = |token: &str| Some(format!("Bearer {token}"));
    let is = |changes: Value| bearer(&signer.token(changes));
    let rows: Vec<(&str, Option<String>, u16, String)> = [
        ("absent", None, 401, NO_TOKEN.to_owned()),
        ("of another scheme", Some("Basic YW5uOng=".into()), 401, NO_TOKEN.into()),
        ("no scheme", Some(good.clone()), 401, NO_TOKEN.into()),
        ("empty", Some("Bearer".into()), 400, invalid_request("the Authorization header has no token of a valid form")),
        ("two words", bearer("a b"), 400, invalid_request("the Authorization header has no token of a valid form")),
        ("quoted", bearer("\"a\""), 400, invalid_request("the Authorization header has no token of a valid form")),
        ("oversized", bearer(&"a".repeat((16 << 10) + 1)), 400, invalid_request("the token is too long")),
        ("malformed", bearer("abc"), 401, INVALID.into()),
        ("malformed, two parts", bearer("e30.e30"), 401, INVALID.into()),
        ("malformed, five parts", bearer("e30.e30.e30.e30.e30"), 401, INVALID.into()),
        ("malformed claims", bearer(&signer.key.sign("at+jwt", &json!(["x"])).unwrap()), 401, INVALID.into()),
        ("wrong signature", bearer(&stranger.sign("at+jwt", &signer.claims()).unwrap()), 401, INVALID.into()),
        ("changed after signing", bearer(&format!("{header}.{other_payload}.{signature}")), 401, INVALID.into()),
        ("no signature", bearer(&format!("{header}.{payload}.")), 401, INVALID.into()),
        ("alg: none", bearer(&unsigned("none")), 401, INVALID.into()),
        ("alg: NoNe", bearer(&unsigned("NoNe")), 401, INVALID.into()),
        ("symmetric key confusion", bearer(&confused("HS256")), 401, INVALID.into()),
        ("symmetric key confusion, other name", bearer(&confused("ES256")), 401, INVALID.into()),
        ("its own key in its header", bearer(&embedded), 401, INVALID.into()),
        ("unknown key id", bearer(&unknown.sign("at+jwt", &signer.claims()).unwrap()), 401, INVALID.into()),
        ("of another kind", bearer(&signer.key.sign("dpop+jwt", &signer.claims()).unwrap()), 401, INVALID.into()),
        ("expired", is(json!({"exp": now - 31})), 401, INVALID.into()),
        ("without an end", is(json!({"exp": null})), 401, INVALID.into()),
        ("with an end that is no time", is(json!({"exp": "2099"})), 401, INVALID.into()),
        ("not yet valid", is(json!({"nbf": now + 31})), 401, INVALID.into()),
        ("wrong issuer", is(json!({"iss": "https://evil.example"})), 401, INVALID.into()),
        ("nearly the issuer", is(json!({"iss": "https://id.example/"})), 401, INVALID.into()),
        ("no issuer", is(json!({"iss": null})), 401, INVALID.into()),
        ("wrong audience", is(json!({"aud": "https://other.example/mcp"})), 401, INVALID.into()),
        ("wrong audiences", is(json!({"aud": ["https://other.example", "app"]})), 401, INVALID.into()),
        ("no audience", is(json!({"aud": null})), 401, INVALID.into()),
        ("wrong resource, of the same host", is(json!({"aud": "https://mcp.example/other"})), 401, INVALID.into()),
        ("wrong resource, above ours", is(json!({"aud": "https://mcp.example"})), 401, INVALID.into()),
        ("wrong resource, below ours", is(json!({"aud": "https://mcp.example/mcp/x"})), 401, INVALID.into()),
        ("wrong resource, by its claim", is(json!({"resource": "https://mcp.example/other"})), 401, INVALID.into()),
        ("no subject and no client", is(json!({"sub": null, "client_id": null})), 401, INVALID.into()),
        ("bound to a certificate", is(json!({"cnf": {"x5t#S256": "abc"}})), 401, INVALID.into()),
        ("missing scope", is(json!({"scope": "other"})), 403, format!("Bearer error=\"insufficient_scope\", error_description=\"the token lacks a required scope; request all of these scopes\", scope=\"mcp\", resource_metadata=\"{METADATA}\"")),
        ("no scope", is(json!({"scope": null})), 403, format!("Bearer error=\"insufficient_scope\", error_description=\"the token lacks a required scope; request all of these scopes\", scope=\"mcp\", resource_metadata=\"{METADATA}\"")),
    ]
    .into();
    for (what, shown, status, challenge) in rows {
        let mut request = Sent::call("whoami");
        if let Some(shown) = &shown {
            request = request.header("authorization", shown);
        }
        // Sent twice: a rejected token must not be cached as valid.
        for _ in 0..2 {
            let got = server.send(&request).await;
            assert_eq!((got.status, got.challenge()), (status, challenge.as_str()), "{what}");
            let error = &got.json()["error"];
            assert_eq!(error["code"], json!(-32600), "{what}");
            if let Some(shown) = &shown {
                let secret = shown.split(['.', ' ']).next_back().unwrap();
                assert!(secret.len() < 8 || !got.body.contains(secret), "{what}: {got:?}");
            }
        }
    }
    assert_eq!(server.calls(), 0, "no request reaches a handler");
    assert!(server.call("whoami", &good).await.text().starts_with("https://id.example|ann|app "));
    assert_eq!(server.calls(), 1);
}

// ARS-05, ARS-13
#[tokio::test]
async fn token_outside_of_a_single_authorization_header_is_rejected() {
    let clock = StandingClock::new();
    let signer = Signer::new(&clock);
    let server = Protected::start(&signer).await;
    let good = signer.token(json!({}));
    let rows = [
        (Sent::call("whoami").bearer(&good).bearer(&good), "send one Authorization header"),
        (
            Sent::call("whoami").target(&format!("/mcp?access_token={good}")),
            "send the token in the Authorization header only",
        ),
        (
            Sent::call("whoami").bearer(&good).target("/mcp?x=1&access_token=y"),
            "send the token in the Authorization header only",
        ),
    ];
    for (request, why) in rows {
        let got = server.send(&request).await;
        assert_eq!((got.status, got.challenge()), (400, invalid_request(why).as_str()));
        assert_eq!(got.json()["error"]["message"], json!(why));
    }
    assert_eq!(server.calls(), 0);
    for scheme in ["bearer", "BEARER", "Bearer "] {
        let request = Sent::call("whoami").header("authorization", format!("{scheme} {good}"));
        assert_eq!(server.send(&request).await.status, 200, "{scheme}");
    }
}

// ARS-12, ARS-18
#[tokio::test]
async fn every_endpoint_requires_a_token() {
    let clock = StandingClock::new();
    let signer = Signer::new(&clock);
    let server = Protected::start(&signer).await;
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "old", "version": "1"},
    }});
    let initialize = Sent::new("POST", "/mcp")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .body(&hello);
    for request in [
        Sent::modern("server/discover", None),
        Sent::modern("tools/list", None),
        initialize.clone(),
        Sent::new("GET", "/mcp").header("accept", "text/event-stream"),
        Sent::new("DELETE", "/mcp"),
        Sent::new("GET", "/sse"),
        Sent::new("POST", "/messages"),
        Sent::new("GET", "/nothing"),
    ] {
        let got = server.send(&request).await;
        assert_eq!((got.status, got.challenge()), (401, NO_TOKEN));
    }
    // Each request of a session is authenticated too, and the session belongs to the principal that
    // opened it.
    let ann = signer.token(json!({}));
    let opened = server.send(&initialize.bearer(&ann)).await;
    let session = opened.header("mcp-session-id").unwrap().to_owned();
    let ping = Sent::new("POST", "/mcp")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2025-11-25")
        .header("mcp-session-id", session)
        .body(&json!({"jsonrpc": "2.0", "id": 2, "method": "ping"}));
    assert_eq!(server.send(&ping).await.status, 401);
    assert_eq!(server.send(&ping.clone().bearer(&ann)).await.status, 200);
    let bob = signer.token(json!({"sub": "bob"}));
    assert_eq!(server.send(&ping.clone().bearer(&bob)).await.status, 404);
    clock.advance(std::time::Duration::from_secs(700));
    assert_eq!(server.send(&ping.bearer(&ann)).await.challenge(), INVALID);
}

#[tokio::test]
async fn clock_skew_within_the_limit_is_accepted() {
    let clock = StandingClock::new();
    let signer = Signer::new(&clock);
    let server = Protected::start(&signer).await;
    let now = clock.seconds();
    for changes in
        [json!({"exp": now - 29}), json!({"nbf": now + 29}), json!({"aud": ["x", RESOURCE]})]
    {
        assert_eq!(server.call("whoami", &signer.token(changes)).await.status, 200);
    }
    // Caching does not extend the validity of a token.
    let token = signer.token(json!({"exp": now + 10}));
    assert_eq!(server.call("whoami", &token).await.status, 200);
    clock.advance(std::time::Duration::from_secs(39));
    assert_eq!(server.call("whoami", &token).await.status, 200);
    clock.advance(std::time::Duration::from_secs(1));
    assert_eq!(server.call("whoami", &token).await.challenge(), INVALID);
}

/// Without a socket, because of the number of cases.
#[test]
fn token_with_one_changed_character_is_rejected() {
    let clock = StandingClock::new();
    let signer = Signer::new(&clock);
    let auth = builder(&signer).build().unwrap();
    let is_let_in = |token: &str| {
        let request =
            http::Request::post("/mcp").header("authorization", format!("Bearer {token}"));
        let (parts, ()) = request.body(()).unwrap().into_parts();
        match auth.authenticate(&parts) {
            AuthDecision::Now(verdict) => verdict.is_ok(),
            AuthDecision::Later(_) => panic!("no network request is expected"),
        }
    };
    let good = signer.token(json!({}));
    for (at, original) in good.char_indices() {
        for other in "AaZz09-_.=~".chars().filter(|other| *other != original) {
            let mut changed = good.clone();
            changed.replace_range(at..=at, &other.to_string());
            assert!(!is_let_in(&changed), "{other} in place of {original} at {at}");
        }
        let (front, rest) = good.split_at(at);
        assert!(!is_let_in(&format!("{front}{}", &rest[1..])), "without {original} at {at}");
        assert!(!is_let_in(&format!("{front}{original}{rest}")), "twice {original} at {at}");
    }
    assert!(is_let_in(&good));
}
