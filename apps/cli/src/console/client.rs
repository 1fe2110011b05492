//! Requests to a console, with the credential of the user.
//!
//! The credential is a token of the command line, a stored login, or a session that the keys of a
//! server on this machine open. Such a session ends with the command.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use outlive::{
    auth::client::{OAuthError, TokenError, TokenRequest, TokenResponse, Tokens},
    client::transport::TransportError,
    server::SealKeys,
};
use outlive_console::sign_in_key;
use outlive_transport::client::http as transport;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use super::address::Address;
use crate::{
    auth,
    call::{
        screen::Screen,
        server::{Connection, Server},
    },
    error::{CliError, Kind, Result},
};

/// Path of the API below the console.
const API: &str = "api/v1";

/// Remedy for a request without a valid credential.
const CREDENTIAL: &str = "pass --token-env VARIABLE or --token-file FILE with a deciding token; for a server on this machine without tokens, pass its --data-dir FOLDER";

/// A client of a console.
pub(crate) struct ConsoleClient {
    http: transport::HttpClient,
    /// URL of the console, without a slash at its end.
    console: String,
    /// URL of the MCP endpoint, for which tokens are valid.
    server: String,
    headers: HeaderMap,
    tokens: Option<Tokens>,
    session: Option<Session>,
}

/// A session that ends with the command.
struct Session {
    cookie: HeaderValue,
    form_token: String,
}

/// A response of a console.
pub(crate) struct Response {
    pub(crate) status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

impl ConsoleClient {
    /// Creates a client, and signs in to a server on this machine without tokens.
    ///
    /// # Errors
    ///
    /// Returns an error if the options are not valid, or if the server rejects its own keys.
    pub(crate) async fn open(
        address: Address,
        connection: &Connection,
        screen: &Arc<Screen>,
    ) -> Result<Self> {
        let Address { console, server, keys } = address;
        let keys = keys.filter(|_| !connection.has_credentials());
        let (options, headers) = connection.http(&Server::read(&server)?, screen)?;
        let is_tls = console.starts_with("https:");
        let http = transport::HttpClient::new(&options, is_tls).map_err(CliError::usage)?;
        let tokens = options.tokens.filter(|_| keys.is_none());
        let mut client = Self { http, console, server, headers, tokens, session: None };
        if let Some(keys) = keys {
            client.sign_in(&keys).await?;
        }
        Ok(client)
    }

    /// Reads an endpoint of the API.
    pub(crate) async fn get(&self, path: &str) -> Result<Response> {
        self.accepted(self.send(Method::GET, &format!("{API}/{path}"), None).await?)
    }

    /// Posts to an endpoint of the API.
    pub(crate) async fn post(&self, path: &str, body: &Value) -> Result<Response> {
        let body = Some(("application/json", body.to_string()));
        self.accepted(self.send(Method::POST, &format!("{API}/{path}"), body).await?)
    }

    /// Ends the session of this command, if it has one. A session that cannot be ended expires.
    pub(crate) async fn close(self) {
        if self.session.is_none() {
            return;
        }
        let Ok(page) = self.send(Method::GET, "settings", None).await else { return };
        let text = String::from_utf8_lossy(&page.body);
        let form = text.split_once("name=\"form_token\" value=\"").map(|(_, rest)| rest);
        let Some(token) = form.and_then(|rest| rest.split('"').next()) else { return };
        let body = format!("action=sign-out&form_token={token}");
        let form = Some(("application/x-www-form-urlencoded", body));
        let _ = self.send(Method::POST, "settings", form).await;
    }

    /// Opens a session with a one-time link.
    async fn sign_in(&mut self, keys: &SealKeys) -> Result<()> {
        #[derive(Deserialize)]
        struct Me {
            form_token: String,
        }
        let key = sign_in_key(keys).ok_or_else(|| {
            CliError::new(Kind::Failed, "the operating system provides no random bytes")
        })?;
        let reply = self.send(Method::GET, &format!("in/{key}"), None).await?;
        let cookies = reply.headers.get_all(header::SET_COOKIE).iter();
        let cookies = cookies.filter_map(|line| line.to_str().ok()?.split(';').next());
        let is_session = |pair: &&str| {
            pair.split_once('=').is_some_and(|(name, value)| {
                matches!(name, "outlive" | "__Host-outlive") && !value.is_empty()
            })
        };
        let cookie = cookies.into_iter().find(is_session).map(HeaderValue::from_str);
        let Some(Ok(mut cookie)) = cookie else { return Err(self.not_signed_in(&reply)) };
        cookie.set_sensitive(true);
        self.session = Some(Session { cookie, form_token: String::new() });
        let Me { form_token } = self.get("me").await?.json()?;
        if let Some(session) = &mut self.session {
            session.form_token = form_token;
        }
        Ok(())
    }

    fn not_signed_in(&self, reply: &Response) -> CliError {
        let console = &self.console;
        match reply.status {
            StatusCode::TOO_MANY_REQUESTS => {
                CliError::unreachable("too many sign-ins from this machine")
                    .remedy("wait a minute, or use a token file and --token-env VARIABLE")
            }
            StatusCode::NOT_FOUND => CliError::unreachable(format_args!(
                "{console} is not a console that accepts the keys in this data folder"
            ))
            .remedy("pass the --data-dir FOLDER of the server, or --server URL"),
            status => CliError::unreachable(format_args!("{console} returned HTTP {status}")),
        }
    }

    /// Sends a request to a path below the console. A rejected token is renewed once.
    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<(&'static str, String)>,
    ) -> Result<Response> {
        let url = format!("{}/{path}", self.console);
        let address = transport::Address::parse(&url).map_err(CliError::usage)?;
        let (kind, body) =
            body.map_or((None, Bytes::new()), |(kind, body)| (Some(kind), body.into()));
        let mut attempt = 1;
        loop {
            let mut headers = self.headers(&method, kind);
            let request = TokenRequest::new(&method, &self.server);
            let token = match &self.tokens {
                Some(tokens) => tokens.authorize(&request, &mut headers).await.map_err(no_token)?,
                None => None,
            };
            let sent = self.http.send(&address, method.clone(), headers, body.clone()).await;
            let mut reply = sent.map_err(|error| self.unreachable(&error))?;
            if let (Some(tokens), StatusCode::UNAUTHORIZED, 1) =
                (&self.tokens, reply.status, attempt)
            {
                let (status, headers) = (reply.status, &reply.headers);
                let answer = TokenResponse::new(request, token.as_ref(), attempt, status, headers);
                if tokens.answered(&answer).await.map_err(no_token)? {
                    attempt += 1;
                    continue;
                }
            }
            let body = reply.bytes().await.map_err(|error| self.unreachable(&error))?;
            return Ok(Response { status: reply.status, headers: reply.headers.clone(), body });
        }
    }

    fn headers(&self, method: &Method, kind: Option<&'static str>) -> HeaderMap {
        let mut headers = self.headers.clone();
        if let Some(kind) = kind {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        }
        let Some(Session { cookie, form_token }) = &self.session else { return headers };
        headers.insert(header::COOKIE, cookie.clone());
        if method == Method::POST {
            let start = self.console.find("://").map_or(0, |at| at + 3);
            let end = self.console[start..].find('/').map_or(self.console.len(), |at| start + at);
            if let Ok(origin) = HeaderValue::from_str(&self.console[..end]) {
                headers.insert(header::ORIGIN, origin);
            }
            if let Ok(token) = HeaderValue::from_str(form_token) {
                headers.insert("x-form-token", token);
            }
        }
        headers
    }

    /// Returns the response, or its error.
    fn accepted(&self, reply: Response) -> Result<Response> {
        #[derive(Deserialize)]
        struct Failure {
            error: String,
            remedy: String,
        }
        if reply.status.is_success() {
            return Ok(reply);
        }
        let kind = match reply.status.as_u16() {
            400 | 422 => Kind::Usage,
            401 | 429 | 500.. => Kind::Unreachable,
            _ => Kind::Failed,
        };
        Err(match (serde_json::from_slice::<Failure>(&reply.body), reply.status) {
            (Ok(failure), StatusCode::UNAUTHORIZED) => {
                CliError::new(kind, failure.error).remedy(CREDENTIAL)
            }
            (Ok(failure), _) => CliError::new(kind, failure.error).remedy(failure.remedy),
            (Err(_), status) => CliError::unreachable(format_args!(
                "{} is not a console: it returned HTTP {}",
                self.console,
                status.as_u16()
            ))
            .remedy("check the URL and --path; `enabled = true` in [console] enables the console"),
        })
    }

    fn unreachable(&self, error: &TransportError) -> CliError {
        CliError::unreachable(error).remedy(format_args!(
            "check that a server runs at {}; `outlive serve` starts one",
            self.server
        ))
    }
}

impl Response {
    /// Returns the body as text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).trim_end().to_owned()
    }

    /// Decodes the body.
    ///
    /// # Errors
    ///
    /// Returns an error if the body is not the expected JSON.
    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T> {
        serde_json::from_slice(&self.body).map_err(|error| {
            CliError::unreachable(format_args!("the console sent an unexpected response: {error}"))
                .remedy("use the version of this program that the server has")
        })
    }
}

fn no_token(error: TokenError) -> CliError {
    match error.downcast_ref::<OAuthError>() {
        Some(error) => auth::trouble(error),
        None => CliError::unreachable(error),
    }
}
