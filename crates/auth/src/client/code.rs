//! A person logs in: the authorization code grant, with PKCE.
//!
//! The issuer, the verifier and the `state` of a login stay with whoever has begun it, and what
//! comes back is held against them before the code is sent anywhere.

use ring::digest::{SHA256, digest};

use super::{
    dpop::Prover,
    error::{OAuthError, OAuthErrorResponse},
    grant::Asked,
    login::{PendingLogin, RedirectParams},
    metadata::ServerMetadata,
    random::random,
    token_endpoint::{Fields, Given, TokenEndpoint},
};
use crate::{
    fetch::{Fetcher, form},
    jose::encode_base64url,
};

/// What a server has to offer for somebody to log in.
#[derive(Debug)]
pub(super) struct Endpoints<'a> {
    pub(super) authorization: &'a str,
    pub(super) token: &'a str,
}

impl<'a> Endpoints<'a> {
    pub(super) fn of(fetch: &Fetcher, server: &'a ServerMetadata) -> Result<Self, OAuthError> {
        let unsuitable = |lacks| OAuthError::Unsuitable { issuer: server.issuer.clone(), lacks };
        let authorization = server.authorization_endpoint.as_deref();
        let authorization =
            authorization.ok_or_else(|| unsuitable("has no place to log in; report it"))?;
        // It is opened in a browser: no `javascript:` or `file:`, and nothing in clear text.
        fetch.check(authorization)?;
        let methods = server.code_challenge_methods_supported.as_deref();
        match methods {
            Some(methods) if methods.iter().any(|method| method == "S256") => {}
            None if server.is_assumed => {}
            _ => {
                return Err(unsuitable(
                    "does not offer PKCE with S256, without which a login can be stolen; report it to its operator",
                ));
            }
        }
        Ok(Self { authorization, token: token_endpoint(server)? })
    }
}

pub(super) fn token_endpoint(server: &ServerMetadata) -> Result<&str, OAuthError> {
    server.token_endpoint.as_deref().ok_or_else(|| OAuthError::Unsuitable {
        issuer: server.issuer.clone(),
        lacks: "has no place to get tokens from; report it",
    })
}

/// Has somebody log in, and gets the token.
pub(super) async fn log_in(
    server: &ServerMetadata,
    endpoints: &Endpoints<'_>,
    prepared: PendingLogin,
    at: &TokenEndpoint<'_>,
    asked: &Asked<'_>,
) -> Result<Given, OAuthError> {
    let (state, verifier) = (random(16)?, random(32)?);
    let redirect_uri = prepared.redirect_uri().to_owned();
    let mut query: Fields<'_> = vec![
        ("response_type", "code".to_owned()),
        ("client_id", at.client.id.clone()),
        ("redirect_uri", redirect_uri.clone()),
        ("state", state.clone()),
        ("code_challenge", encode_base64url(digest(&SHA256, verifier.as_bytes()))),
        ("code_challenge_method", "S256".to_owned()),
        ("resource", asked.resource.to_owned()),
    ];
    asked.put_scopes(&mut query);
    if asked.scopes.contains("offline_access") {
        // OpenID Connect gives no lasting access that nobody has agreed to.
        query.push(("prompt", "consent".to_owned()));
    }
    if let Some(key) = at.prover.map(Prover::thumbprint) {
        query.push(("dpop_jkt", key));
    }
    let query = form::encode(query.iter().map(|(name, value)| (*name, value.as_str())));
    let separator = if endpoints.authorization.contains('?') { '&' } else { '?' };
    let page = format!("{}{separator}{query}", endpoints.authorization);
    let redirected = prepared.go(page).await?;
    let code = judge(server, &redirected, &state)?;
    let fields: Fields<'_> = vec![
        ("grant_type", "authorization_code".to_owned()),
        ("code", code.to_owned()),
        ("redirect_uri", redirect_uri),
        ("code_verifier", verifier),
        ("resource", asked.resource.to_owned()),
    ];
    at.ask("the token", fields).await
}

/// Whether what came back is the answer to this login, by this server; its code then.
fn judge<'a>(
    server: &ServerMetadata,
    redirected: &'a RedirectParams,
    state: &str,
) -> Result<&'a str, OAuthError> {
    if redirected.get("state") != Some(state) {
        return Err(OAuthError::BadRedirect("its `state` is that of another login"));
    }
    match redirected.get("iss") {
        // As text: what only looks the same is another one.
        Some(issuer) if issuer != server.issuer => {
            return Err(OAuthError::BadRedirect("it comes from another authorization server"));
        }
        None if server.authorization_response_iss_parameter_supported => {
            return Err(OAuthError::BadRedirect("it does not say which server it comes from"));
        }
        _ => {}
    }
    // Only now is what it says that server's word.
    if let Some(error) = redirected.get("error") {
        let refusal = OAuthErrorResponse::new(error, redirected.get("error_description"));
        return Err(OAuthError::Refused { what: "the login", refusal });
    }
    redirected.get("code").ok_or(OAuthError::BadRedirect("it has no code"))
}

#[cfg(test)]
mod tests {
    use super::{OAuthError, RedirectParams, ServerMetadata, judge};

    #[track_caller]
    fn check(advertised: bool, query: &str, expect: Result<&str, &str>) {
        let server = ServerMetadata {
            issuer: "https://as.test".to_owned(),
            authorization_response_iss_parameter_supported: advertised,
            ..ServerMetadata::default()
        };
        let redirected = RedirectParams::from_query(query);
        let judged = judge(&server, &redirected, "s");
        match (judged, expect) {
            (Ok(code), expect) => assert_eq!(Ok(code), expect, "{query}"),
            (Err(error), Err(part)) => {
                assert!(error.to_string().contains(part), "{query}: {error}");
            }
            (Err(error), Ok(_)) => panic!("{query}: {error}"),
        }
    }

    // ACL-18, ACL-19, ACL-20, ACL-21
    #[test]
    fn an_answer_is_taken_from_the_server_that_was_asked_and_no_other() {
        check(true, "code=c&state=s&iss=https%3A%2F%2Fas.test", Ok("c"));
        check(false, "code=c&state=s", Ok("c"));
        check(true, "code=c&state=s", Err("does not say which server"));
        for other in ["https://as.test/", "https://AS.test", "https://as.test:443", "https://evil"]
        {
            check(
                false,
                &format!("code=c&state=s&iss={other}"),
                Err("another authorization server"),
            );
        }
        check(false, "code=c&state=t", Err("`state`"));
        check(false, "code=c", Err("`state`"));
        check(false, "code=c&code=d&state=s", Err("no code"));
        check(false, "error=access_denied&error_description=no&state=s", Err("access_denied (no)"));
    }

    // ACL-20
    #[test]
    fn what_another_server_says_is_not_shown() {
        let server = ServerMetadata { issuer: "https://as.test".to_owned(), ..Default::default() };
        let redirected = RedirectParams::from_query(
            "error=x&error_description=call+this+number&state=s&iss=https%3A%2F%2Fevil",
        );
        let error = judge(&server, &redirected, "s").unwrap_err();
        assert!(matches!(error, OAuthError::BadRedirect(_)));
        assert!(!error.to_string().contains("number"));
    }
}
