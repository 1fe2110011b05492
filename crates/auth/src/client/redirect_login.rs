//! Login of a web application: one request redirects the browser, a later one gets the redirect.
//!
//! Between the two requests the application stores the secrets of the login. Any replica that reads
//! them finishes the login, so no process waits for the user.

use std::{fmt, sync::Arc};

use outlive_transport::client::SecretString;
use serde::{Deserialize, Serialize};

use super::{
    acquire::Granted,
    code::{CodeRequest, Endpoints, token_endpoint},
    discovery,
    dpop::Prover,
    error::OAuthError,
    grant::Asked,
    login::RedirectParams,
    metadata::ServerMetadata,
    oauth::{LoginInfo, OAuth, Source, Why},
    scopes::Scopes,
};
use crate::fetch::Fetcher;

/// A login whose redirect is not known yet.
#[non_exhaustive]
pub struct StartedLogin {
    /// URL of the page where the user logs in.
    pub url: String,
    /// `state` parameter of the redirect, to find the login.
    pub state: String,
    /// Secrets of the login, for [`OAuth::finish_login`]. Must not reach the browser in clear text.
    pub pending: SecretString,
}

impl fmt::Debug for StartedLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StartedLogin(…)")
    }
}

impl OAuth {
    /// Starts the login of a user of a web application, which redirects the browser to
    /// [`StartedLogin::url`].
    ///
    /// # Errors
    ///
    /// Returns an error if the authorization server cannot be found or used.
    pub async fn start_login(&self, redirect_uri: &str) -> Result<StartedLogin, OAuthError> {
        self.source().start_login(redirect_uri).await
    }

    /// Finishes a login with the parameters of its redirect, and stores the tokens.
    ///
    /// # Errors
    ///
    /// Returns an error if the redirect belongs to another login, if the user did not consent, or if
    /// no token could be acquired.
    pub async fn finish_login(
        &self,
        pending: &SecretString,
        redirect: &RedirectParams,
    ) -> Result<LoginInfo, OAuthError> {
        self.source().finish_login(pending, redirect).await?;
        let server = self.source().settings.server.clone();
        self.login_info().await?.ok_or(OAuthError::LoginRequired { server })
    }
}

/// Stored form of a started login. Has no `Debug`, because it contains secrets.
#[derive(Serialize, Deserialize)]
struct Pending {
    issuer: String,
    is_assumed: bool,
    client_id: String,
    resource: String,
    scopes: Scopes,
    dpop_key: Option<String>,
    request: CodeRequest,
}

impl Source {
    async fn start_login(&self, redirect_uri: &str) -> Result<StartedLogin, OAuthError> {
        self.secure()?;
        let (fetch, why) = (self.fetch().await, Why::login());
        let found = self.discover(fetch, &why, None).await?;
        let server = &found.server;
        let scopes = self.choose_scopes(&why, &found, None);
        let prover = self.bound_key(&found, &why)?;
        let endpoints = Endpoints::of(fetch, server)?;
        let known = self.registered(server).await?;
        let client = self.client(fetch, server, known, redirect_uri, prover.is_some()).await?;
        let at = self.endpoint(fetch, server, endpoints.token, &client, prover.as_deref());
        let request = CodeRequest::new(redirect_uri)?;
        let asked = Asked { resource: &found.resource, scopes: &scopes };
        let (url, state) = (request.page(&endpoints, &at, &asked), request.state.clone());
        let pending = Pending {
            issuer: server.issuer.clone(),
            is_assumed: server.is_assumed,
            client_id: client.id.clone(),
            resource: found.resource.clone(),
            scopes,
            dpop_key: prover.as_ref().map(|prover| prover.kept().to_owned()),
            request,
        };
        let pending = SecretString::new(serde_json::to_string(&pending).unwrap_or_default());
        Ok(StartedLogin { url, state, pending })
    }

    async fn finish_login(
        &self,
        pending: &SecretString,
        redirect: &RedirectParams,
    ) -> Result<(), OAuthError> {
        let unreadable = |_| OAuthError::BadRedirect("its login is not readable");
        let pending: Pending = serde_json::from_str(pending.expose()).map_err(unreadable)?;
        let fetch = self.fetch().await;
        let server = self.issuer_of(fetch, &pending).await?;
        let client = match self.named(&server)? {
            Some(client) => Some(client),
            None => self.registered(&server).await?,
        };
        let client = client.filter(|client| client.id == pending.client_id);
        let client = client.ok_or(OAuthError::BadRedirect("its client is no longer registered"))?;
        let prover = pending.dpop_key.as_deref().map(Prover::read).transpose()?.map(Arc::new);
        let url = token_endpoint(&server)?;
        let at = self.endpoint(fetch, &server, url, &client, prover.as_deref());
        let Pending { client_id, resource, scopes, request, .. } = pending;
        let given = match request.exchange(&server, redirect, &at, &resource).await {
            Ok(given) => given,
            Err(error) => {
                self.disown(&server, &client, &error).await?;
                return Err(error);
            }
        };
        let granted = Granted { server: &server, client_id, resource, scopes, prover };
        self.keep_granted(granted, given).await
    }

    /// Returns the authorization server that a login was started with.
    async fn issuer_of(
        &self,
        fetch: &Fetcher,
        pending: &Pending,
    ) -> Result<ServerMetadata, OAuthError> {
        if let Some(server) = self.known_server(&pending.issuer) {
            return Ok(server);
        }
        let server = match pending.is_assumed {
            true => discovery::assumed(fetch, self.place()?).await?,
            false => discovery::discover_server(fetch, &pending.issuer).await?,
        };
        self.note_server(&server);
        Ok(server)
    }
}
