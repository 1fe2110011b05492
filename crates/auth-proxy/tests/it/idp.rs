//! An identity provider that does not support MCP and has one client.

use std::{
    collections::HashMap,
    time::{SystemTime, UNIX_EPOCH},
};

use outlive_auth::{fetch::form, jose::SigningKey};
use serde_json::{Value, json};

use crate::shared::site::{Answer, Seen, answer};
use crate::support::{SECRET, hash};

/// State and settings of the provider.
pub(crate) struct Idp {
    pub(super) made: usize,
    pub(super) codes: HashMap<String, Seen>,
    pub(crate) refresh: Vec<String>,
    pub(crate) revoked: Vec<String>,
    pub(crate) renewals: usize,
    /// Error that replaces the code in the callback.
    pub(crate) error: Option<&'static str>,
    /// Error for token requests.
    pub(crate) refuses: Option<(u16, &'static str)>,
    pub(crate) expires_in: Option<u64>,
    pub(crate) refreshes: bool,
    /// Claims that override those of ID tokens.
    pub(crate) claims: Value,
}

pub(super) fn provider(base: &str, seen: &Seen, idp: &mut Idp, key: &SigningKey) -> Answer {
    match seen.path.as_str() {
        "/.well-known/openid-configuration" => answer(
            200,
            json!({
                "issuer": base,
                "authorization_endpoint": format!("{base}/authorize"),
                "token_endpoint": format!("{base}/token"),
                "revocation_endpoint": format!("{base}/revoke"),
            }),
        ),
        "/authorize" => {
            idp.made += 1;
            let code = format!("provider-code-{}", idp.made);
            idp.codes.insert(code.clone(), seen.clone());
            let (said, state) = match idp.error {
                Some(error) => (("error", error.to_owned()), seen.asks("state").unwrap()),
                None => (("code", code), seen.asks("state").unwrap()),
            };
            let query = form::encode([(said.0, said.1.as_str()), ("state", &state)]);
            let back = format!("{}?{query}", seen.asks("redirect_uri").unwrap());
            answer(302, Value::Null).with("location", back)
        }
        "/token" => token(base, seen, idp, key),
        "/userinfo" => {
            let expected = format!("Bearer {SECRET}-access-");
            let good = seen.header("authorization").is_some_and(|it| it.starts_with(&expected));
            if good {
                answer(200, json!({"id": 7, "login": "ann"}))
            } else {
                answer(401, Value::Null)
            }
        }
        "/revoke" => {
            idp.revoked.push(seen.field("token").unwrap());
            answer(200, Value::Null)
        }
        _ => answer(404, Value::Null),
    }
}

fn token(base: &str, seen: &Seen, idp: &mut Idp, key: &SigningKey) -> Answer {
    let refused = |error: &str| answer(400, json!({"error": error}));
    // "the-one:hush", in a header or in the form.
    let in_header = seen.header("authorization") == Some("Basic dGhlLW9uZTpodXNo");
    let in_form = seen.field("client_id").as_deref() == Some("the-one")
        && seen.field("client_secret").as_deref() == Some("hush");
    if !in_header && !in_form {
        return refused("invalid_client");
    }
    if let Some((status, error)) = idp.refuses {
        return answer(status, json!({"error": error}));
    }
    let mut nonce = None;
    if seen.field("grant_type").as_deref() == Some("refresh_token") {
        let token = seen.field("refresh_token").unwrap();
        let Some(at) = idp.refresh.iter().position(|known| *known == token) else {
            return refused("invalid_grant");
        };
        // A refresh token is valid once.
        idp.refresh.remove(at);
        idp.renewals += 1;
    } else {
        let Some(asked) = idp.codes.remove(&seen.field("code").unwrap()) else {
            return refused("invalid_grant");
        };
        let challenge = hash(&seen.field("code_verifier").unwrap());
        assert_eq!(asked.asks("code_challenge"), Some(challenge));
        assert_eq!(asked.asks("code_challenge_method").as_deref(), Some("S256"));
        assert_eq!(asked.asks("client_id").as_deref(), Some("the-one"));
        assert_eq!(asked.asks("redirect_uri"), seen.field("redirect_uri"));
        nonce = asked.asks("nonce");
    }
    idp.made += 1;
    let refresh = format!("{SECRET}-refresh-{}", idp.made);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let mut claims = json!({
        "iss": base, "sub": "ann", "aud": "the-one", "exp": now + 3600, "nonce": nonce,
        "email": "ann@example.com",
    });
    for (name, value) in idp.claims.as_object().unwrap() {
        claims[name] = value.clone();
    }
    let mut given = json!({
        "access_token": format!("{SECRET}-access-{}", idp.made), "token_type": "bearer",
        "id_token": key.sign("JWT", &claims).unwrap(),
    });
    if let Some(span) = idp.expires_in {
        given["expires_in"] = json!(span);
    }
    if idp.refreshes {
        idp.refresh.push(refresh.clone());
        given["refresh_token"] = json!(refresh);
    }
    answer(200, given)
}
