//! Tests of tokens that are bound to a key: every request needs its own proof.

use std::time::Duration;

use outlive_auth::jose::{Algorithm, SigningKey, encode_base64url};
use ring::digest;
use serde_json::{Value, json};

use super::support::{
    METADATA, Protected, RESOURCE, Sent, Signer, StandingClock, builder, changed,
};

const ALGS: &str = "RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 EdDSA";

fn error(error: &str, why: &str) -> String {
    format!(
        "DPoP error=\"{error}\", error_description=\"{why}\", algs=\"{ALGS}\", resource_metadata=\"{METADATA}\", scope=\"mcp\""
    )
}

fn invalid_token() -> String {
    error("invalid_token", "the token is not valid for this server; get a new one")
}

fn invalid_proof() -> String {
    error(
        "invalid_dpop_proof",
        "the DPoP proof is not valid for this request; create a new one for each request",
    )
}

/// A caller with a key and a token that is bound to it.
struct Bound {
    key: SigningKey,
    token: String,
    clock: StandingClock,
}

impl Bound {
    fn new(signer: &Signer) -> Self {
        let key = SigningKey::generate(Algorithm::Es256).unwrap();
        let token = signer.token(json!({"cnf": {"jkt": key.public().thumbprint()}}));
        Self { key, token, clock: signer.clock.clone() }
    }

    fn claims(&self, name: &str) -> Value {
        let hash = digest::digest(&digest::SHA256, self.token.as_bytes());
        json!({
            "jti": name, "htm": "POST", "htu": RESOURCE, "iat": self.clock.seconds(),
            "ath": encode_base64url(hash),
        })
    }

    fn proof(&self, name: &str, changes: Value) -> String {
        self.key.sign_with_key("dpop+jwt", &changed(self.claims(name), changes)).unwrap()
    }

    fn request(&self, proof: &str) -> Sent {
        self.shown().header("dpop", proof)
    }

    fn shown(&self) -> Sent {
        Sent::call("whoami").header("authorization", format!("DPoP {}", self.token))
    }
}

#[tokio::test]
async fn invalid_proof_reaches_no_handler() {
    let clock = StandingClock::new();
    let signer = Signer::new(&clock);
    let server = Protected::start(&signer).await;
    let ann = Bound::new(&signer);
    let eve = Bound::new(&signer);
    let now = clock.seconds();
    let claims = ann.claims("other");
    let by_eve = eve.key.sign_with_key("dpop+jwt", &claims).unwrap();
    let without_key = ann.key.sign("dpop+jwt", &claims).unwrap();
    let other_kind = ann.key.sign_with_key("at+jwt", &claims).unwrap();
    // The key of one caller in the header, with the signature of another.
    let (front, _) = ann
        .proof("mixed", json!({}))
        .rsplit_once('.')
        .map(|(a, b)| (a.to_owned(), b.to_owned()))
        .unwrap();
    let (_, back) = by_eve.rsplit_once('.').unwrap();
    let mixed = format!("{front}.{back}");
    let proof = |changes: Value| ann.request(&ann.proof("p", changes));
    let unbound = signer.token(json!({}));

    let rows: Vec<(&str, Sent, String)> = vec![
        ("missing, as a bearer token", Sent::call("whoami").bearer(&ann.token), invalid_token()),
        (
            "as a bearer token, with a proof",
            Sent::call("whoami").bearer(&ann.token).header("dpop", ann.proof("b", json!({}))),
            invalid_token(),
        ),
        (
            "of a token that is not bound",
            Sent::call("whoami")
                .header("authorization", format!("DPoP {unbound}"))
                .header("dpop", ann.proof("u", json!({}))),
            invalid_token(),
        ),
        ("missing", ann.shown(), invalid_proof()),
        ("malformed", ann.request("abc"), invalid_proof()),
        (
            "two of them",
            ann.request(&ann.proof("1", json!({}))).header("dpop", ann.proof("2", json!({}))),
            invalid_proof(),
        ),
        ("of another key", ann.request(&by_eve), invalid_proof()),
        ("signed by another", ann.request(&mixed), invalid_proof()),
        ("without its key", ann.request(&without_key), invalid_proof()),
        ("of another kind", ann.request(&other_kind), invalid_proof()),
        ("for another method", proof(json!({"htm": "GET"})), invalid_proof()),
        ("for a method in other letters", proof(json!({"htm": "post"})), invalid_proof()),
        ("for another host", proof(json!({"htu": "https://evil.example/mcp"})), invalid_proof()),
        ("for another path", proof(json!({"htu": "https://mcp.example/other"})), invalid_proof()),
        ("for another scheme", proof(json!({"htu": "http://mcp.example/mcp"})), invalid_proof()),
        ("for no URL", proof(json!({"htu": null})), invalid_proof()),
        ("for another token", proof(json!({"ath": encode_base64url([0; 32])})), invalid_proof()),
        ("for no token", proof(json!({"ath": null})), invalid_proof()),
        ("too old", proof(json!({"iat": now - 91})), invalid_proof()),
        ("of the future", proof(json!({"iat": now + 31})), invalid_proof()),
        ("without a time", proof(json!({"iat": null})), invalid_proof()),
        ("without a name", proof(json!({"jti": null})), invalid_proof()),
        ("with an empty name", proof(json!({"jti": ""})), invalid_proof()),
        ("with an endless name", proof(json!({"jti": "x".repeat(257)})), invalid_proof()),
    ];
    for (what, request, challenge) in rows {
        let got = server.send(&request).await;
        assert_eq!((got.status, got.challenge()), (401, challenge.as_str()), "{what}");
    }
    assert_eq!(server.calls(), 0, "no request reaches a handler");

    // A rejected proof does not count as used; an accepted proof does.
    let good = proof(json!({}));
    assert!(server.send(&good).await.text().starts_with("https://id.example|ann|app "));
    for _ in 0..2 {
        let got = server.send(&good).await;
        assert_eq!((got.status, got.challenge()), (401, invalid_proof().as_str()), "replayed");
    }
    assert_eq!(server.calls(), 1);
    // Another key may use the same ID, and equivalent URLs are equal.
    let same = json!({"htu": "HTTPS://MCP.example:443/mcp?x=1#y"});
    assert_eq!(server.send(&eve.request(&eve.proof("p", same))).await.status, 200);
    clock.advance(Duration::from_secs(60));
    let got = server.send(&good).await;
    assert_eq!(got.challenge(), invalid_proof(), "replayed while it could still be valid");
}

#[tokio::test]
async fn server_that_requires_dpop_rejects_bearer_tokens() {
    let clock = StandingClock::new();
    let signer = Signer::new(&clock);
    let server = Protected::with(builder(&signer).require_dpop()).await;
    let got = server.send(&Sent::call("whoami")).await;
    let challenge =
        format!("DPoP algs=\"{ALGS}\", resource_metadata=\"{METADATA}\", scope=\"mcp\"");
    assert_eq!((got.status, got.challenge()), (401, challenge.as_str()));
    let got = server.call("whoami", &signer.token(json!({}))).await;
    assert_eq!((got.status, got.challenge()), (401, invalid_token().as_str()));
    let ann = Bound::new(&signer);
    assert_eq!(server.send(&ann.request(&ann.proof("a", json!({})))).await.status, 200);
    let document = server.send(&Sent::new("GET", "/.well-known/oauth-protected-resource")).await;
    assert_eq!(document.json()["dpop_bound_access_tokens_required"], json!(true));
    // The challenge for a missing scope uses the scheme of the request.
    let request = Sent::call("write")
        .header("authorization", format!("DPoP {}", ann.token))
        .header("dpop", ann.proof("w", json!({})));
    let got = server.send(&request).await;
    assert_eq!(got.status, 403);
    assert!(got.challenge().starts_with("DPoP error=\"insufficient_scope\""), "{got:?}");
}

#[tokio::test]
async fn proof_without_a_valid_nonce_is_rejected() {
    let clock = StandingClock::new();
    let signer = Signer::new(&clock);
    let span = Duration::from_secs(60);
    let server = Protected::with(builder(&signer).dpop_nonces(span, Some(b"shared"))).await;
    let ann = Bound::new(&signer);
    let wanted = error("use_dpop_nonce", "include the nonce of the DPoP-Nonce header in the proof");
    let got = server.send(&ann.request(&ann.proof("a", json!({})))).await;
    assert_eq!((got.status, got.challenge()), (401, wanted.as_str()));
    let nonce = got.header("dpop-nonce").unwrap().to_owned();
    // The same proof ID with the nonce: the rejected proof did not count as used.
    let with_nonce = |name: &str| ann.request(&ann.proof(name, json!({"nonce": nonce})));
    assert_eq!(server.send(&with_nonce("a")).await.status, 200);
    let got = server.send(&ann.request(&ann.proof("b", json!({"nonce": "made-up"})))).await;
    assert_eq!(got.challenge(), wanted);
    // A replica with the same secret accepts the nonce. After two spans it has expired.
    let replica = Protected::with(builder(&signer).dpop_nonces(span, Some(b"shared"))).await;
    assert_eq!(replica.send(&with_nonce("c")).await.status, 200);
    clock.advance(Duration::from_secs(120));
    let got = server.send(&with_nonce("d")).await;
    assert_eq!(got.challenge(), wanted);
    assert_ne!(got.header("dpop-nonce").unwrap(), nonce);
}

#[tokio::test]
async fn full_replay_cache_rejects_further_proofs() {
    let clock = StandingClock::new();
    let signer = Signer::new(&clock);
    let server = Protected::with(builder(&signer).dpop_replay_cache_size(30)).await;
    let greedy = Bound::new(&signer);
    let mut statuses = Vec::new();
    for number in 0..4 {
        let proof = greedy.proof(&format!("n{number}"), json!({}));
        statuses.push(server.send(&greedy.request(&proof)).await.status);
    }
    assert_eq!(statuses, [200, 200, 200, 429]);
    // A used ID stays used, and other keys have their own share.
    let again = greedy.proof("n0", json!({}));
    assert_eq!(server.send(&greedy.request(&again)).await.status, 401);
    let other = Bound::new(&signer);
    assert_eq!(server.send(&other.request(&other.proof("n0", json!({})))).await.status, 200);
}
