//! Sign-in with OAuth: authorization code with PKCE. Tokens never reach the browser.
//!
//! A started login is a sealed entry of the store, so any replica finishes it. It opens only for the
//! browser that started it. The tokens of a session are another sealed entry; one replica at a time
//! refreshes them.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use http::{Method, request::Parts};
use outlive::{
    auth::client::{
        CredentialStore, CredentialStoreError, OAuth, OAuthBuilder, OAuthError, RedirectParams,
        SecretString, TokenError, TokenRequest, TokenResponse, TokenSource as _, Tokens,
    },
    people::{Purpose, Vault},
    server::{Clock, Principal, http::Authenticator},
    store::StoreError,
};
use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;

use super::{
    session::digest,
    token::{Denied, authenticate},
};
use crate::urlencoded::Values;

/// Time for a user to log in at the authorization server.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(600);

/// Time before the expiry of a token at which it is refreshed. Longer than that of the OAuth client,
/// which would otherwise refresh it without the lock.
const EARLY: Duration = Duration::from_secs(35);

/// Time after which another replica refreshes tokens whose refresh was not finished.
const REFRESH_TIMEOUT: Duration = Duration::from_secs(30);

/// Interval in which a request checks whether another one has refreshed the tokens.
const REFRESH_POLL: Duration = Duration::from_millis(100);

/// Time for which a dynamic registration of the console's client is stored.
const REGISTRATION_TTL: Duration = Duration::from_secs(7_776_000);

type Configure = dyn Fn(OAuthBuilder) -> OAuthBuilder + Send + Sync;

/// The OAuth client of a console.
///
/// People sign in at the authorization server of the MCP server. Without a client ID, the console
/// registers dynamically. The redirect URI is `in/callback` below the address of the console.
///
/// ```
/// use outlive_console::OAuthLogin;
///
/// let login = OAuthLogin::new("https://shop.example.com/mcp")
///     .configure(|oauth| oauth.client_id("console").client_secret("secret"));
/// ```
#[derive(Clone)]
pub struct OAuthLogin {
    server: String,
    configure: Arc<Configure>,
}

impl OAuthLogin {
    /// Creates a client for the MCP server at this URL, which is the resource of its tokens.
    pub fn new(server: impl Into<String>) -> Self {
        Self { server: server.into(), configure: Arc::new(|oauth| oauth) }
    }

    /// Sets options of the OAuth client, such as its client ID. The console sets its login and its
    /// credential store.
    #[must_use]
    pub fn configure(
        mut self,
        configure: impl Fn(OAuthBuilder) -> OAuthBuilder + Send + Sync + 'static,
    ) -> Self {
        self.configure = Arc::new(configure);
        self
    }
}

impl fmt::Debug for OAuthLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuthLogin").field("server", &self.server).finish_non_exhaustive()
    }
}

/// Logins and tokens of a console.
pub(crate) struct OAuthSignIn {
    login: OAuthLogin,
    vault: Vault,
    /// Time after which every session ends.
    ttl: Duration,
}

/// Content of the entry of a started login.
#[derive(Serialize, Deserialize)]
struct Started {
    pending: String,
    /// Page of the console to open after the login.
    next: String,
}

impl OAuthSignIn {
    pub(crate) fn new(login: OAuthLogin, vault: Vault, ttl: Duration) -> Self {
        Self { login, vault, ttl }
    }

    /// Starts a login of a browser. Returns the address of the login page.
    pub(crate) async fn start(
        &self,
        browser: &str,
        redirect_uri: &str,
        next: &str,
    ) -> Result<String, OAuthError> {
        // The tokens of this client are stored when the login is finished.
        let started = self.client("").start_login(redirect_uri).await?;
        let content =
            Started { pending: started.pending.expose().to_owned(), next: next.to_owned() };
        let content = serde_json::to_vec(&content).unwrap_or_default();
        let key = login_key(&started.state);
        let sealed = self.vault.seal(Purpose::SignIn, &["oauth", browser, &key], &content);
        let failed = |error: &dyn fmt::Display| OAuthError::Login(format!("{error}; retry later"));
        let sealed = sealed.ok_or_else(|| failed(&"no random bytes"))?;
        let stored = self.vault.put(&key, &sealed, LOGIN_TIMEOUT, None).await;
        stored.map_err(|error| failed(&error))?;
        Ok(started.url)
    }

    /// Finishes the login of a browser with the query of its redirect, and stores the tokens of the
    /// session with this digest. Returns the page to open.
    pub(crate) async fn finish(
        &self,
        browser: &str,
        query: &str,
        session: &str,
    ) -> Result<String, OAuthError> {
        let unknown = OAuthError::BadRedirect("it belongs to no login of this browser");
        let values = Values::decode(query.as_bytes());
        let key = login_key(values.get("state").unwrap_or_default());
        let failed = |error: &dyn fmt::Display| OAuthError::Login(format!("{error}; retry later"));
        let sealed = self.vault.get(&key).await.map_err(|error| failed(&error))?;
        let opened = sealed.and_then(|sealed| {
            self.vault.unseal(Purpose::SignIn, &["oauth", browser, &key], &sealed)
        });
        let started = opened.and_then(|content| serde_json::from_slice::<Started>(&content).ok());
        let Some(Started { pending, next }) = started else { return Err(unknown) };
        self.vault.delete(&key).await.map_err(|error| failed(&error))?;
        let redirect = RedirectParams::from_query(query);
        self.client(session).finish_login(&SecretString::new(pending), &redirect).await?;
        Ok(next)
    }

    /// Checks the access token of a session.
    pub(crate) async fn check(
        &self,
        authenticator: &dyn Authenticator,
        parts: &Parts,
        session: &str,
    ) -> Result<Principal, Denied> {
        let tokens = Tokens::new(self.fresh(session).await?);
        let mut accepted = self.attempt(authenticator, &tokens, parts, 1).await?;
        if accepted.is_none() {
            accepted = self.attempt(authenticator, &tokens, parts, 2).await?;
        }
        // A person who signed in at the authorization server decides here; an agent cannot.
        accepted.map(Principal::deciding).ok_or(Denied::Rejected)
    }

    /// Revokes the tokens of a session, and deletes them.
    pub(crate) async fn forget(&self, session: &str) {
        if let Err(error) = self.client(session).logout().await {
            tracing::warn!(%error, "the tokens of a session were not revoked");
        }
    }

    /// Authenticates a request with the access token. Returns `None` to retry with a nonce of the
    /// authenticator.
    async fn attempt(
        &self,
        authenticator: &dyn Authenticator,
        tokens: &Tokens,
        parts: &Parts,
        attempt: u32,
    ) -> Result<Option<Principal>, Denied> {
        let mut parts = parts.clone();
        let method = parts.method.clone();
        let request = TokenRequest::new(&method, &self.login.server);
        let token = tokens.authorize(&request, &mut parts.headers).await;
        let token = token.map_err(|error| denied(&error))?.ok_or(Denied::Rejected)?;
        let rejection = match authenticate(authenticator, &parts).await {
            Ok(principal) => return Ok(Some(principal)),
            Err(rejection) => rejection,
        };
        if !rejection.headers().contains_key("dpop-nonce") {
            return Err(rejection.into());
        }
        let (status, headers) = (rejection.status(), rejection.headers());
        let answer = TokenResponse::new(request, Some(&token), attempt, status, headers);
        match tokens.answered(&answer).await.map_err(|error| denied(&error))? {
            true => Ok(None),
            false => Err(Denied::Rejected),
        }
    }

    /// Returns the client of a session with a token that does not expire soon.
    async fn fresh(&self, session: &str) -> Result<OAuth, Denied> {
        let polls = REFRESH_TIMEOUT.as_millis() / REFRESH_POLL.as_millis();
        for _ in 0..polls {
            let client = self.client(session);
            let info = client.login_info().await.map_err(|error| Denied::unavailable(&error))?;
            let info = info.ok_or(Denied::Rejected)?;
            if !info.renewable || !self.is_expiring(info.expires) {
                return Ok(client);
            }
            let lock = format!("console/refresh/{session}");
            if self.vault.put_if_absent(&lock, "", REFRESH_TIMEOUT, None).await? {
                let method = Method::POST;
                let request = TokenRequest::new(&method, &self.login.server);
                let refreshed = client.token(&request).await;
                self.vault.delete(&lock).await?;
                return match refreshed.map_err(|error| denied(&error))? {
                    Some(_) => Ok(client),
                    None => Err(Denied::Rejected),
                };
            }
            self.vault.sleep(REFRESH_POLL).await;
        }
        Err(Denied::unavailable(&"the tokens of a session are being refreshed"))
    }

    fn is_expiring(&self, expires: Option<SystemTime>) -> bool {
        let now = SystemTime::UNIX_EPOCH + Duration::from_millis(self.vault.now());
        expires.is_some_and(|expires| expires <= now + EARLY)
    }

    /// Returns the client of a session.
    fn client(&self, session: &str) -> OAuth {
        let entries = Entries {
            vault: self.vault.clone(),
            session: session.to_owned(),
            ttl: self.ttl,
            runtime: Handle::current(),
        };
        let builder = OAuth::builder(&self.login.server).client_name("Outlive console");
        let clock = VaultClock(self.vault.clone());
        (self.login.configure)(builder).clock(clock).store(entries).build()
    }
}

fn login_key(state: &str) -> String {
    format!("console/login/{}", digest(state))
}

/// Converts an error of the OAuth client. A session ends unless a retry may succeed.
fn denied(error: &TokenError) -> Denied {
    match error.downcast_ref::<OAuthError>() {
        Some(cause) if cause.is_transient() => Denied::unavailable(cause),
        Some(cause @ OAuthError::Store(_)) => Denied::unavailable(cause),
        _ => Denied::Rejected,
    }
}

/// The clock of the server, for the OAuth client.
#[derive(Debug)]
struct VaultClock(Vault);

impl Clock for VaultClock {
    fn now(&self) -> Instant {
        self.0.instant()
    }

    fn wall(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_millis(self.0.now())
    }

    fn sleep(&self, span: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let vault = self.0.clone();
        Box::pin(async move { vault.sleep(span).await })
    }
}

/// Credential store of one session: its tokens, and the registration that all sessions share.
struct Entries {
    vault: Vault,
    session: String,
    ttl: Duration,
    /// The OAuth client calls credential stores on threads that may block.
    runtime: Handle,
}

impl Entries {
    /// Returns key and TTL of an entry.
    fn entry(&self, name: &str) -> (String, Duration) {
        match name.starts_with("tokens ") {
            true => (format!("console/tokens/{}", self.session), self.ttl),
            false => (format!("console/client/{}", digest(name)), REGISTRATION_TTL),
        }
    }
}

impl CredentialStore for Entries {
    fn get(&self, name: &str) -> Result<Option<SecretString>, CredentialStoreError> {
        let (key, _) = self.entry(name);
        let sealed = self.runtime.block_on(self.vault.get(&key)).map_err(|error| failed(&error))?;
        let opened = sealed.and_then(|it| self.vault.unseal(Purpose::Session, &[&key], &it));
        Ok(opened.and_then(|it| String::from_utf8(it).ok()).map(SecretString::new))
    }

    fn put(&self, name: &str, value: &SecretString) -> Result<(), CredentialStoreError> {
        let (key, ttl) = self.entry(name);
        let sealed = self.vault.seal(Purpose::Session, &[&key], value.expose().as_bytes());
        let sealed = sealed.ok_or_else(|| CredentialStoreError::new("no random bytes; retry"))?;
        self.runtime
            .block_on(self.vault.put(&key, &sealed, ttl, None))
            .map_err(|error| failed(&error))
    }

    fn remove(&self, name: &str) -> Result<(), CredentialStoreError> {
        let (key, _) = self.entry(name);
        self.runtime.block_on(self.vault.delete(&key)).map_err(|error| failed(&error))
    }
}

fn failed(error: &StoreError) -> CredentialStoreError {
    CredentialStoreError::new(format!("{error}; retry"))
}
