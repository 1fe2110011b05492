//! Acquires tokens: discovers the authorization server, selects the client registration, runs the
//! grant and stores the result.

use std::sync::Arc;

use outlive_transport::client::SecretString;

use super::{
    code::{Endpoints, log_in, token_endpoint},
    discovery,
    dpop::{ALGORITHM, Prover, seconds},
    error::{OAuthError, OAuthRequest},
    grant::{Asked, Grant},
    metadata::{ResourceMetadata, ServerMetadata},
    oauth::{Kind, Source, Why},
    registration::{By, Registered},
    scopes::Scopes,
    store::{CredentialStore, tokens_for},
    token::{Held, Since},
    token_endpoint::{Given, TokenEndpoint},
    url::Place,
};
use crate::fetch::Fetcher;

/// Result of discovery: the authorization server of an MCP server.
pub(super) struct Found {
    pub(super) server: ServerMetadata,
    /// Resource identifier for token requests, as the server publishes it.
    pub(super) resource: String,
    metadata: Option<ResourceMetadata>,
}

/// Data of a grant, which a token is stored with.
pub(super) struct Granted<'a> {
    pub(super) server: &'a ServerMetadata,
    pub(super) client_id: String,
    pub(super) resource: String,
    pub(super) scopes: Scopes,
    pub(super) prover: Option<Arc<Prover>>,
}

impl Source {
    /// Acquires a token and stores it. The caller must hold `gate`.
    pub(super) async fn acquire(&self, why: &Why) -> Result<(), OAuthError> {
        self.secure()?;
        if self.settings.login.is_some() && !why.is_quiet {
            // A login waits for its user, so it must not block other processes.
            return self.acquire_now(why).await;
        }
        let reservation = self.begin_renewal().await?;
        let acquired = self.acquire_now(why).await;
        reservation.end().await;
        acquired
    }

    async fn acquire_now(&self, why: &Why) -> Result<(), OAuthError> {
        // Another process may have acquired a token and rotated our refresh token.
        self.reload().await?;
        let mut held = self.current();
        let is_replaced = match (&held, &why.refused) {
            (Some(held), Some(refused)) => held.token != *refused,
            (held, None) => held.is_some() && why.kind == Kind::Unrequested,
            (None, Some(_)) => false,
        };
        if is_replaced {
            return Ok(());
        }
        if let Grant::Exchange(exchange) = &self.settings.grant {
            return self.exchange(exchange).await;
        }
        let fetch = self.fetch().await;
        if why.kind == Kind::Expiring {
            let Some(held) = held else { return Ok(()) };
            let server = self.server_of(fetch, &held).await?;
            return match self.refresh(fetch, &server, &held).await {
                Err(error) if is_final(&error) => self.forget().await,
                refreshed => refreshed,
            };
        }
        let challenged;
        let why = match why.kind {
            Kind::Unrequested => {
                challenged = self.challenge(why).await;
                &challenged
            }
            _ => why,
        };
        let found = self.discover(fetch, why, held.as_deref()).await?;
        if held.as_ref().is_some_and(|held| held.issuer != found.server.issuer) {
            // Tokens of one authorization server are not valid at another.
            self.forget().await?;
            held = None;
        }
        if let Some(held) = &held
            && matches!(why.kind, Kind::Refused | Kind::Unrequested)
            && held.refresh.is_some()
            && !held.is_just_refreshed(self.now())
        {
            match self.refresh(fetch, &found.server, held).await {
                Err(error) if is_final(&error) => self.forget().await?,
                refreshed => return refreshed,
            }
        }
        let scopes = self.choose_scopes(why, &found, held.as_deref());
        self.grant(fetch, &found, scopes, why).await
    }

    /// Discovers the authorization server of the MCP server.
    pub(super) async fn discover(
        &self,
        fetch: &Fetcher,
        why: &Why,
        held: Option<&Held>,
    ) -> Result<Found, OAuthError> {
        let server = self.place()?;
        let metadata = discovery::resource(fetch, server, why.metadata.as_deref()).await?;
        let issuers = metadata.as_ref().map_or(&[][..], |it| &it.authorization_servers);
        let known = |issuer: &&String| issuers.contains(issuer);
        let configured = self.settings.issuer.as_ref();
        let chosen = configured.filter(known);
        let chosen = chosen.or_else(|| held.map(|held| &held.issuer).filter(known));
        let found = match chosen.or(issuers.first()) {
            Some(issuer) => discovery::discover_server(fetch, issuer).await?,
            None => discovery::assumed(fetch, server).await?,
        };
        if self.settings.client.is_some()
            && let Some(from) = self.bound_to()
            && from != found.issuer
        {
            let (server, to) = (self.settings.server.clone(), found.issuer);
            return Err(OAuthError::Moved { server, from, to });
        }
        self.note_server(&found);
        let resource = metadata.as_ref().map(|it| it.resource.clone());
        let resource = resource.unwrap_or_else(|| server.without_query().to_owned());
        Ok(Found { server: found, resource, metadata })
    }

    /// Adds the challenge of the MCP server to a reason that has none.
    async fn challenge(&self, why: &Why) -> Why {
        let server = &self.settings.server;
        why.clone().with(&discovery::challenges(&self.own_fetch(), server).await)
    }

    /// Chooses the scopes to request: those of the challenge, else the configured ones, else all
    /// that the server supports. Adds the scopes of the previous request.
    pub(super) fn choose_scopes(&self, why: &Why, found: &Found, held: Option<&Held>) -> Scopes {
        let offered = || found.metadata.iter().flat_map(|it| &it.scopes_supported).collect();
        let wanted = match (&why.scopes, self.settings.scopes.is_empty()) {
            (Some(scopes), _) => scopes.clone(),
            (None, false) => self.settings.scopes.clone(),
            (None, true) => offered(),
        };
        let mut scopes = match held {
            Some(held) => held.requested.clone().union(&wanted),
            None => wanted,
        };
        let server = &found.server;
        let lasting = server.scopes_supported.iter().any(|scope| scope == "offline_access");
        // Requested alone, `offline_access` would replace the server's default scopes.
        let may_last = matches!(self.settings.grant, Grant::Code) && server.refreshes();
        if lasting && may_last && !scopes.is_empty() {
            scopes.add("offline_access");
        }
        scopes
    }

    async fn grant(
        &self,
        fetch: &Fetcher,
        found: &Found,
        scopes: Scopes,
        why: &Why,
    ) -> Result<(), OAuthError> {
        let server = &found.server;
        let prover = self.bound_key(found, why)?;
        let wants_key = prover.is_some();
        let asked = Asked { resource: &found.resource, scopes: &scopes };
        let (client, given) = match &self.settings.grant {
            Grant::Code => {
                let login = self.settings.login.as_ref().filter(|_| !why.is_quiet);
                let login = login.ok_or_else(|| OAuthError::LoginRequired {
                    server: self.settings.server.clone(),
                })?;
                let endpoints = Endpoints::of(fetch, server)?;
                let known = self.registered(server).await?;
                let prepared =
                    login.prepare(known.as_ref().and_then(|it| it.redirect_uri.as_deref())).await?;
                let redirect_uri = prepared.redirect_uri().to_owned();
                let client = self.client(fetch, server, known, &redirect_uri, wants_key).await?;
                let at = self.endpoint(fetch, server, endpoints.token, &client, prover.as_deref());
                let given = log_in(server, &endpoints, prepared, &at, &asked).await;
                if let Err(error) = &given {
                    self.disown(server, &client, error).await?;
                }
                let given = given?;
                (client, given)
            }
            grant => {
                let client = self.configured(server)?;
                let client =
                    client.ok_or(OAuthError::NoRegistration { issuer: server.issuer.clone() })?;
                let url = token_endpoint(server)?;
                let at = self.endpoint(fetch, server, url, &client, prover.as_deref());
                let given = grant.run(&self.own_fetch(), &at, &asked).await?;
                (client, given)
            }
        };
        let (client_id, resource) = (client.id, found.resource.clone());
        self.keep_granted(Granted { server, client_id, resource, scopes, prover }, given).await
    }

    /// Stores the token of a grant.
    pub(super) async fn keep_granted(
        &self,
        granted: Granted<'_>,
        given: Given,
    ) -> Result<(), OAuthError> {
        let Granted { server, client_id, resource, scopes, prover } = granted;
        let now = seconds(self.now());
        let held = Held {
            issuer: server.issuer.clone(),
            is_assumed: server.is_assumed,
            client_id,
            resource,
            prover: binding(server, &given, prover)?,
            expires: given.expires_in.map(|span| now.saturating_add(span)),
            token: given.access_token,
            refresh: given.refresh_token,
            granted: given.scope.as_deref().map(Scopes::parse),
            requested: scopes,
            since: Since::Granted(now),
        };
        self.keep(held).await
    }

    /// Creates the key that the token is bound to, if the settings or the server require one.
    pub(super) fn bound_key(
        &self,
        found: &Found,
        why: &Why,
    ) -> Result<Option<Arc<Prover>>, OAuthError> {
        let required =
            found.metadata.as_ref().is_some_and(|it| it.dpop_bound_access_tokens_required);
        match self.settings.dpop || why.dpop || required {
            true => Ok(Some(Arc::new(self.prover(&found.server)?))),
            false => Ok(None),
        }
    }

    /// Refreshes a token with its refresh token.
    async fn refresh(
        &self,
        fetch: &Fetcher,
        server: &ServerMetadata,
        held: &Held,
    ) -> Result<(), OAuthError> {
        let Some(refresh) = &held.refresh else { return Ok(()) };
        let client = match self.named(server)? {
            Some(client) => Some(client),
            None => self.registered(server).await?,
        };
        // A refresh token is valid only for the client that it was issued to.
        let Some(client) = client.filter(|client| client.id == held.client_id) else {
            return self.forget().await;
        };
        let url = token_endpoint(server)?;
        let at = self.endpoint(fetch, server, url, &client, held.prover.as_deref());
        let fields = vec![
            ("grant_type", "refresh_token".to_owned()),
            ("refresh_token", refresh.expose().to_owned()),
            ("resource", held.resource.clone()),
        ];
        let given = match at.ask(OAuthRequest::TokenRefresh, fields).await {
            Ok(given) => given,
            Err(error) => {
                self.disown(server, &client, &error).await?;
                return Err(error);
            }
        };
        let now = seconds(self.now());
        let renewed = Held {
            prover: binding(server, &given, held.prover.clone())?,
            expires: given.expires_in.map(|span| now.saturating_add(span)),
            token: given.access_token,
            // The old refresh token stays valid unless the server issues a new one.
            refresh: given.refresh_token.or_else(|| held.refresh.clone()),
            granted: given.scope.as_deref().map(Scopes::parse).or_else(|| held.granted.clone()),
            since: Since::Refreshed(now),
            ..held.clone()
        };
        self.keep(renewed).await
    }

    /// Deletes the tokens from memory and from the store, and revokes them if the server supports
    /// that. Returns whether there were tokens.
    pub(super) async fn log_out(&self) -> Result<bool, OAuthError> {
        let _alone = self.gate.lock().await;
        self.reload().await?;
        let Some(held) = self.current() else { return Ok(false) };
        self.forget().await?;
        // The tokens are already deleted locally, so a failed revocation is not an error.
        if let Err(error) = self.revoke(&held).await {
            tracing::debug!(%error, "revoking the tokens failed");
        }
        Ok(true)
    }

    async fn revoke(&self, held: &Held) -> Result<(), OAuthError> {
        let fetch = self.fetch().await;
        let server = self.server_of(fetch, held).await?;
        let Some(url) = server.revocation_endpoint.as_deref() else { return Ok(()) };
        let client = match self.named(&server)? {
            Some(client) => Some(client),
            None => self.registered(&server).await?,
        };
        let Some(client) = client.filter(|client| client.id == held.client_id) else {
            return Ok(());
        };
        let at = self.endpoint(fetch, &server, url, &client, held.prover.as_deref());
        let (token, kind) = match &held.refresh {
            Some(refresh) => (refresh, "refresh_token"),
            None => (&held.token, "access_token"),
        };
        let fields =
            vec![("token", token.expose().to_owned()), ("token_type_hint", kind.to_owned())];
        at.send(OAuthRequest::TokenRevocation, fields).await.map(drop)
    }

    async fn server_of(&self, fetch: &Fetcher, held: &Held) -> Result<ServerMetadata, OAuthError> {
        if let Some(server) = self.known_server(&held.issuer) {
            return Ok(server);
        }
        let server = match held.is_assumed {
            true => discovery::assumed(fetch, self.place()?).await?,
            false => discovery::discover_server(fetch, &held.issuer).await?,
        };
        self.note_server(&server);
        Ok(server)
    }

    pub(super) fn place(&self) -> Result<&Place, OAuthError> {
        let missing =
            || OAuthError::Login("the address of the server is not a URL; check it".to_owned());
        self.server.as_ref().ok_or_else(missing)
    }

    fn prover(&self, server: &ServerMetadata) -> Result<Prover, OAuthError> {
        let offered = &server.dpop_signing_alg_values_supported;
        match offered.iter().any(|algorithm| algorithm == ALGORITHM) {
            true => Ok(Prover::generate()?),
            false => Err(OAuthError::Unsuitable {
                issuer: server.issuer.clone(),
                lacks: "does not support DPoP with ES256, which is required",
            }),
        }
    }

    pub(super) fn endpoint<'a>(
        &'a self,
        fetch: &'a Fetcher,
        server: &'a ServerMetadata,
        url: &'a str,
        client: &'a Registered,
        prover: Option<&'a Prover>,
    ) -> TokenEndpoint<'a> {
        let settings = &self.settings;
        let key = match client.by {
            By::Document => settings.document_key.as_deref(),
            By::Hand | By::Itself => settings.client.as_ref().and_then(|it| it.key.as_deref()),
        };
        TokenEndpoint { fetch, url, issuer: &server.issuer, client, key, prover, now: self.now() }
    }

    async fn keep(&self, held: Held) -> Result<(), OAuthError> {
        let kept = held.write();
        // The token is kept in memory first, so that a failing store does not lose it.
        self.hold(Some(held));
        self.put(&self.tokens(), kept).await
    }

    async fn forget(&self) -> Result<(), OAuthError> {
        self.hold(None);
        self.remove(&self.tokens()).await
    }

    /// Loads the tokens from the store, if they differ from those in memory.
    pub(super) async fn reload(&self) -> Result<(), OAuthError> {
        let kept = self.get(&self.tokens()).await?.as_ref().and_then(Held::read);
        let is_same = match (&kept, self.current()) {
            (Some(kept), Some(held)) => kept.token == held.token,
            (kept, held) => kept.is_none() && held.is_none(),
        };
        match (is_same, kept) {
            (true, None) => self.hold(None),
            (true, Some(_)) => {}
            (false, kept) => self.hold(kept),
        }
        Ok(())
    }

    fn tokens(&self) -> String {
        tokens_for(self.server.as_ref())
    }

    /// Reserves the renewal of the tokens, among the processes that share the store.
    async fn begin_renewal(&self) -> Result<Reservation, OAuthError> {
        let (store, name) = (Arc::clone(&self.settings.store), self.tokens());
        let (reserved_in, reserved) = (Arc::clone(&store), name.clone());
        blocking(move || store.begin_renewal(&name)).await??;
        Ok(Reservation { store: reserved_in, name: reserved })
    }

    pub(super) async fn get(&self, name: &str) -> Result<Option<SecretString>, OAuthError> {
        let (store, name) = (Arc::clone(&self.settings.store), name.to_owned());
        Ok(blocking(move || store.get(&name)).await??)
    }

    pub(super) async fn put(&self, name: &str, value: SecretString) -> Result<(), OAuthError> {
        let (store, name) = (Arc::clone(&self.settings.store), name.to_owned());
        Ok(blocking(move || store.put(&name, &value)).await??)
    }

    pub(super) async fn remove(&self, name: &str) -> Result<(), OAuthError> {
        let (store, name) = (Arc::clone(&self.settings.store), name.to_owned());
        Ok(blocking(move || store.remove(&name)).await??)
    }
}

/// A reserved renewal. The task that holds it is never dropped, so it always ends the reservation.
struct Reservation {
    store: Arc<dyn CredentialStore>,
    name: String,
}

impl Reservation {
    async fn end(self) {
        if let Err(error) = blocking(move || self.store.end_renewal(&self.name)).await {
            tracing::debug!(%error, "a reserved renewal expires by itself");
        }
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, OAuthError> {
    let interrupted = |_| OAuthError::Login("the operation was interrupted; retry".to_owned());
    tokio::task::spawn_blocking(work).await.map_err(interrupted)
}

/// Returns whether the error is permanent, so that a retry cannot succeed.
fn is_final(error: &OAuthError) -> bool {
    match error {
        OAuthError::Refused { response, .. } => {
            !error.is_transient() && response.code != "slow_down"
        }
        _ => false,
    }
}

/// Returns the key that a token is bound to. Rejects a token whose binding differs from the
/// request.
fn binding(
    server: &ServerMetadata,
    given: &Given,
    prover: Option<Arc<Prover>>,
) -> Result<Option<Arc<Prover>>, OAuthError> {
    let is_bound = given.token_type.eq_ignore_ascii_case("DPoP");
    match (is_bound, &prover) {
        (true, Some(_)) => Ok(prover),
        (false, None) => Ok(None),
        (true, None) | (false, Some(_)) => Err(OAuthError::Unsuitable {
            issuer: server.issuer.clone(),
            lacks: "returned a token of another type than requested; report it to its operator",
        }),
    }
}
