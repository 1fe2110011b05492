//! How often a call allocates between its bytes and the bytes of its answer.
//!
//! Timings are noisy, counts are exact: what one more allocation costs would never show in the
//! figures, and here it fails a test. The counts are those of `allocation-counter`, because it
//! counts the calling thread alone, so that neither the test harness nor a parallel test is in
//! them; and it brings the `unsafe` of a global allocator with it, which this project forbids
//! itself. It counts growing a buffer as one more allocation, which is what it mostly is.

use outlive_benches::{echo::Path, messages};

/// The call, the text in its arguments, its boxed work, the list of its content, and the buffer for
/// its answer.
const CALL: u64 = 5;

/// As before, and the state of the run, which the context of the handler owns.
const DURABLE_CALL: u64 = CALL + 1;

/// Counts one answer, after one that was not counted: what is made once is not part of a call.
#[track_caller]
fn check(path: anyhow::Result<Path>, bound: u64) {
    let path = path.expect("a server and a message");
    path.answer(path.arrive(), &mut Vec::new()).expect("an answer");
    let arrival = path.arrive();
    let seen = allocation_counter::measure(|| {
        // As the HTTP transport does; a pipe writes all its answers into one buffer.
        let mut out = Vec::with_capacity(512);
        path.answer(arrival, &mut out).expect("an answer");
    });
    assert!(
        seen.count_total <= bound,
        "{} allocations ({} bytes) for a call, {bound} so far; find the new one, or raise the bound and say why",
        seen.count_total,
        seen.bytes_total
    );
}

#[test]
fn a_modern_call_over_http() {
    let message = messages::small_modern_call();
    assert_eq!(message.len(), 270);
    check(Path::modern_http(message), CALL);
}

#[test]
fn a_modern_call_whose_params_come_before_its_method() {
    let message = messages::small_modern_call_reordered();
    assert_eq!(message.len(), 270);
    check(Path::modern_http(message), CALL);
}

#[test]
fn a_modern_call_on_a_pipe() {
    check(Path::modern_pipe(messages::small_modern_call()), CALL);
}

#[test]
fn a_legacy_call_over_http() {
    check(Path::legacy_http(messages::legacy_call()), CALL);
}

#[test]
fn a_call_of_a_handler_that_could_ask() {
    for path in [
        Path::modern_http(messages::small_modern_call()),
        Path::modern_pipe(messages::small_modern_call()),
        Path::legacy_http(messages::legacy_call()),
    ] {
        check(path.and_then(Path::to_durable), DURABLE_CALL);
    }
}

/// A token that was found good before: a hash and a look-up, for every request.
#[test]
fn a_caller_with_a_known_token() {
    use outlive::{
        auth::{
            jose::{Algorithm, JwkSet, SigningKey},
            server::{Issuer, ResourceServer},
        },
        server::http::{AuthDecision, Authenticator as _},
    };

    let key = SigningKey::generate(Algorithm::Es256).expect("a key");
    let issuer = Issuer::new("https://id.example").keys(JwkSet::new([key.public()]));
    let auth = ResourceServer::builder("https://mcp.example/mcp")
        .issuer(issuer)
        .scopes(["mcp"])
        .build()
        .expect("a resource server");
    let claims = serde_json::json!({
        "iss": "https://id.example", "sub": "ann", "client_id": "app", "scope": "mcp read write",
        "aud": "https://mcp.example/mcp", "exp": u32::MAX,
    });
    let token = key.sign("at+jwt", &claims).expect("a token");
    let request = http::Request::post("/mcp").header("authorization", format!("Bearer {token}"));
    let (parts, ()) = request.body(()).expect("a request").into_parts();
    assert!(matches!(auth.authenticate(&parts), AuthDecision::Now(Ok(_))), "it is good");
    let seen = allocation_counter::measure(|| {
        assert!(matches!(auth.authenticate(&parts), AuthDecision::Now(Ok(_))), "it is still good");
    });
    assert_eq!(seen.count_total, 0, "a token that is known costs no memory");
}
