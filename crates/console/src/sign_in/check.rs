//! Checks the credential of each request: its own, or that of its session.

use std::time::Duration;

use http::header;
use outlive::{
    people::{Channel, Vault, Visitor},
    server::Principal,
};

use super::{
    form_token,
    oauth::OAuthSignIn,
    roles::Roles,
    session::{Credential, Session, Sessions},
    token::{self, Denied, authenticate},
};
use crate::{
    cookies::{Cookies, SESSION},
    http::is_same_origin,
    rate_limit::RateLimit,
    request::{ConsoleRequest, is_loopback_host},
};

/// Average interval of sign-ins from one address, and their number at once.
const SIGN_IN_INTERVAL: Duration = Duration::from_secs(12);
const SIGN_IN_BURST: u32 = 5;

/// Everything that signs visitors in.
pub(crate) struct SignIn {
    pub(crate) vault: Vault,
    pub(crate) sessions: Sessions,
    pub(crate) roles: Roles,
    pub(crate) oauth: Option<OAuthSignIn>,
    /// Address of the server for people, without a slash at its end.
    pub(crate) public_url: Option<String>,
    /// Sign-ins per address.
    pub(crate) attempts: RateLimit,
}

/// A visitor who is signed in.
pub(crate) struct SignedIn {
    pub(crate) visitor: Visitor,
    /// Name for pages and logs.
    pub(crate) name: String,
    /// Key that limits count: the same in all sessions of a person.
    pub(crate) key: String,
    /// Session of a browser; `None` for a request with its own credential.
    pub(crate) session: Option<Session>,
}

impl SignIn {
    pub(crate) fn new(
        vault: Vault,
        sessions: Sessions,
        roles: Roles,
        oauth: Option<OAuthSignIn>,
        public_url: Option<String>,
    ) -> Self {
        let attempts = RateLimit::new(SIGN_IN_INTERVAL, SIGN_IN_BURST);
        Self { vault, sessions, roles, oauth, public_url, attempts }
    }

    /// Returns the visitor who sends a request. Returns `None` without a valid credential.
    ///
    /// A request with an `Authorization` header has its own credential, and its cookies are ignored.
    pub(crate) async fn visitor(
        &self,
        request: &ConsoleRequest,
    ) -> Result<Option<SignedIn>, Denied> {
        if request.headers().contains_key(header::AUTHORIZATION) {
            return self.bearer(request).await;
        }
        let cookies = self.cookies(request);
        let Some(id) = cookies.get(request.headers(), SESSION) else { return Ok(None) };
        let Some(session) = self.sessions.find(id).await? else { return Ok(None) };
        let principal = match self.principal(request, &session).await {
            Ok(principal) if principal.person() == Some(session.person.as_str()) => principal,
            Ok(_) | Err(Denied::Rejected) => {
                self.end(&session).await?;
                return Ok(None);
            }
            Err(unavailable) => return Err(unavailable),
        };
        let visitor = self.roles.visitor(&principal, Channel::Console);
        let (name, key) = (session.person.clone(), session.person.clone());
        Ok(Some(SignedIn { visitor, name, key, session: Some(session) }))
    }

    async fn bearer(&self, request: &ConsoleRequest) -> Result<Option<SignedIn>, Denied> {
        let Some(authenticator) = request.authenticator() else { return Ok(None) };
        let principal = match authenticate(&**authenticator, &request.parts).await {
            Ok(principal) => principal,
            Err(rejection) => match Denied::from(rejection) {
                Denied::Rejected => return Ok(None),
                unavailable @ Denied::Unavailable(_) => return Err(unavailable),
            },
        };
        let visitor = self.roles.visitor(&principal, Channel::Api);
        let name = principal.person().unwrap_or("anonymous").to_owned();
        let key = principal.person().unwrap_or_else(|| principal.key()).to_owned();
        Ok(Some(SignedIn { visitor, name, key, session: None }))
    }

    /// Checks the credential of a session.
    async fn principal(
        &self,
        request: &ConsoleRequest,
        session: &Session,
    ) -> Result<Principal, Denied> {
        let parts = &request.parts;
        match (&session.credential, request.authenticator(), &self.oauth) {
            // A link works only on a server without an authenticator.
            (Credential::Link, None, _) => Ok(Principal::LOCAL.deciding()),
            (Credential::Token(token), Some(authenticator), _) => {
                token::check(&**authenticator, parts, token).await
            }
            (Credential::OAuth, Some(authenticator), Some(oauth)) => {
                oauth.check(&**authenticator, parts, &session.digest).await
            }
            _ => Err(Denied::Rejected),
        }
    }

    /// Ends a session, and revokes its tokens.
    pub(crate) async fn end(&self, session: &Session) -> Result<(), Denied> {
        self.sessions.end(session).await?;
        if let (Credential::OAuth, Some(oauth)) = (&session.credential, &self.oauth) {
            oauth.forget(&session.digest).await;
        }
        Ok(())
    }

    /// Returns the cookies of a connection. The public address says whether browsers use TLS; without
    /// one, only a server on this machine is used without TLS.
    pub(crate) fn cookies(&self, request: &ConsoleRequest) -> Cookies {
        let is_tls = match &self.public_url {
            Some(url) => url.starts_with("https:"),
            None => !request.host().is_some_and(is_loopback_host),
        };
        Cookies { is_tls }
    }

    /// Returns whether a submitted form comes from a page of this session at this path.
    pub(crate) fn is_own_form(
        &self,
        request: &ConsoleRequest,
        session: &str,
        path: &str,
        token: &str,
    ) -> bool {
        is_same_origin(request, self.public_url.as_deref())
            && form_token::is_valid(&self.vault, session, path, token)
    }
}
