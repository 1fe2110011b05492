//! User login: the authorization code grant with PKCE.
//!
//! The client keeps the issuer, the verifier and the `state` of a login. It checks the redirect
//! against them before it sends the code.

use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

use super::{
    dpop::Prover,
    error::{OAuthError, OAuthErrorResponse, OAuthRequest},
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

/// Endpoints that a login requires.
#[derive(Debug)]
pub(super) struct Endpoints<'a> {
    pub(super) authorization: &'a str,
    pub(super) token: &'a str,
}

impl<'a> Endpoints<'a> {
    pub(super) fn of(fetch: &Fetcher, server: &'a ServerMetadata) -> Result<Self, OAuthError> {
        let unsuitable = |lacks| OAuthError::Unsuitable { issuer: server.issuer.clone(), lacks };
        let authorization = server.authorization_endpoint.as_deref();
        let authorization = authorization.ok_or_else(|| {
            unsuitable("has no authorization endpoint; report it to its operator")
        })?;
        // The URL is opened in a browser: reject `javascript:`, `file:` and clear text.
        fetch.check(authorization)?;
        let methods = server.code_challenge_methods_supported.as_deref();
        match methods {
            Some(methods) if methods.iter().any(|method| method == "S256") => {}
            None if server.is_assumed => {}
            _ => {
                return Err(unsuitable(
                    "does not support PKCE with S256, which protects a login from interception; report it to its operator",
                ));
            }
        }
        Ok(Self { authorization, token: token_endpoint(server)? })
    }
}

pub(super) fn token_endpoint(server: &ServerMetadata) -> Result<&str, OAuthError> {
    server.token_endpoint.as_deref().ok_or_else(|| OAuthError::Unsuitable {
        issuer: server.issuer.clone(),
        lacks: "has no token endpoint; report it to its operator",
    })
}

/// Lets the user log in, and exchanges the code for a token.
pub(super) async fn log_in(
    server: &ServerMetadata,
    endpoints: &Endpoints<'_>,
    prepared: PendingLogin,
    at: &TokenEndpoint<'_>,
    asked: &Asked<'_>,
) -> Result<Given, OAuthError> {
    let request = CodeRequest::new(prepared.redirect_uri())?;
    let page = request.page(endpoints, at, asked);
    let redirected = prepared.go(page).await?;
    request.exchange(server, &redirected, at, asked.resource).await
}

/// Secrets of a login between the request for a code and the redirect.
#[derive(Serialize, Deserialize)]
pub(super) struct CodeRequest {
    pub(super) state: String,
    verifier: String,
    redirect_uri: String,
}

impl CodeRequest {
    pub(super) fn new(redirect_uri: &str) -> Result<Self, OAuthError> {
        let redirect_uri = redirect_uri.to_owned();
        Ok(Self { state: random(16)?, verifier: random(32)?, redirect_uri })
    }

    /// Returns the URL of the page where the user logs in.
    pub(super) fn page(
        &self,
        endpoints: &Endpoints<'_>,
        at: &TokenEndpoint<'_>,
        asked: &Asked<'_>,
    ) -> String {
        let mut query: Fields<'_> = vec![
            ("response_type", "code".to_owned()),
            ("client_id", at.client.id.clone()),
            ("redirect_uri", self.redirect_uri.clone()),
            ("state", self.state.clone()),
            ("code_challenge", encode_base64url(digest(&SHA256, self.verifier.as_bytes()))),
            ("code_challenge_method", "S256".to_owned()),
            ("resource", asked.resource.to_owned()),
        ];
        asked.put_scopes(&mut query);
        if asked.scopes.contains("offline_access") {
            // OpenID Connect issues refresh tokens only with explicit consent.
            query.push(("prompt", "consent".to_owned()));
        }
        if let Some(key) = at.prover.map(Prover::thumbprint) {
            query.push(("dpop_jkt", key));
        }
        let query = form::encode(query.iter().map(|(name, value)| (*name, value.as_str())));
        let separator = if endpoints.authorization.contains('?') { '&' } else { '?' };
        format!("{}{separator}{query}", endpoints.authorization)
    }

    /// Checks the redirect, and exchanges its code for a token.
    pub(super) async fn exchange(
        self,
        server: &ServerMetadata,
        redirected: &RedirectParams,
        at: &TokenEndpoint<'_>,
        resource: &str,
    ) -> Result<Given, OAuthError> {
        let code = check_redirect(server, redirected, &self.state)?;
        let fields: Fields<'_> = vec![
            ("grant_type", "authorization_code".to_owned()),
            ("code", code.to_owned()),
            ("redirect_uri", self.redirect_uri),
            ("code_verifier", self.verifier),
            ("resource", resource.to_owned()),
        ];
        at.ask(OAuthRequest::Token, fields).await
    }
}

/// Checks that a redirect belongs to this login and this server. Returns its code.
fn check_redirect<'a>(
    server: &ServerMetadata,
    redirected: &'a RedirectParams,
    state: &str,
) -> Result<&'a str, OAuthError> {
    if redirected.get("state") != Some(state) {
        return Err(OAuthError::BadRedirect("its `state` belongs to another login"));
    }
    match redirected.get("iss") {
        // Issuers are compared as text: an equivalent URL is another issuer.
        Some(issuer) if issuer != server.issuer => {
            return Err(OAuthError::BadRedirect("its `iss` is another authorization server"));
        }
        None if server.authorization_response_iss_parameter_supported => {
            return Err(OAuthError::BadRedirect("it has no `iss` parameter"));
        }
        _ => {}
    }
    // The issuer is verified, so the error is from this server.
    if let Some(error) = redirected.get("error") {
        let response = OAuthErrorResponse::new(error, redirected.get("error_description"));
        return Err(OAuthError::Refused { request: OAuthRequest::Login, response });
    }
    redirected.get("code").ok_or(OAuthError::BadRedirect("it has no code"))
}

#[cfg(test)]
mod tests {
    use super::{OAuthError, RedirectParams, ServerMetadata, check_redirect};

    #[track_caller]
    fn check(advertised: bool, query: &str, expect: Result<&str, &str>) {
        let server = ServerMetadata {
            issuer: "https://as.test".to_owned(),
            authorization_response_iss_parameter_supported: advertised,
            ..ServerMetadata::default()
        };
        let redirected = RedirectParams::from_query(query);
        let judged = check_redirect(&server, &redirected, "s");
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
    fn redirect_with_wrong_state_or_issuer_is_rejected() {
        check(true, "code=c&state=s&iss=https%3A%2F%2Fas.test", Ok("c"));
        check(false, "code=c&state=s", Ok("c"));
        check(true, "code=c&state=s", Err("has no `iss`"));
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
    fn redirect_of_another_server_does_not_show_its_error_description() {
        let server = ServerMetadata { issuer: "https://as.test".to_owned(), ..Default::default() };
        let redirected = RedirectParams::from_query(
            "error=x&error_description=call+this+number&state=s&iss=https%3A%2F%2Fevil",
        );
        let error = check_redirect(&server, &redirected, "s").unwrap_err();
        assert!(matches!(error, OAuthError::BadRedirect(_)));
        assert!(!error.to_string().contains("number"));
    }
}
