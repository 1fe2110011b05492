//! Client identity at an authorization server: registered in advance, by a metadata document, or
//! dynamically.

use super::{
    dpop::seconds,
    error::OAuthError,
    metadata::ServerMetadata,
    oauth::Source,
    registration::{By, Method, Registered},
    url::Place,
};
use crate::fetch::Fetcher;

impl Source {
    /// Returns the client for a login: registered in advance, else by a document, else dynamically.
    pub(super) async fn client(
        &self,
        fetch: &Fetcher,
        server: &ServerMetadata,
        known: Option<Registered>,
        redirect_uri: &str,
        with_dpop: bool,
    ) -> Result<Registered, OAuthError> {
        if let Some(client) = self.named(server)? {
            return Ok(client);
        }
        let now = seconds(self.now());
        let fits = |known: &Registered| {
            known.redirect_uri.as_deref() == Some(redirect_uri)
                && (known.secret_expires == 0 || known.secret_expires > now)
        };
        if let Some(known) = known.filter(fits) {
            return Ok(known);
        }
        let name = &self.settings.name;
        let client = Registered::register(fetch, server, name, redirect_uri, with_dpop).await?;
        self.put(&registration(&server.issuer), client.write()).await?;
        Ok(client)
    }

    /// Returns a client that needs no dynamic registration: registered in advance, or by a
    /// document.
    pub(super) fn named(&self, server: &ServerMetadata) -> Result<Option<Registered>, OAuthError> {
        match self.configured(server)? {
            Some(client) => Ok(Some(client)),
            None => self.document(server),
        }
    }

    /// Returns the client that was registered in advance.
    pub(super) fn configured(
        &self,
        server: &ServerMetadata,
    ) -> Result<Option<Registered>, OAuthError> {
        let Some(client) = &self.settings.client else { return Ok(None) };
        let wanted: &[Method] = match (&client.key, &client.secret) {
            (Some(_), _) => &[Method::Key],
            (None, Some(_)) => &[Method::Basic, Method::Post],
            (None, None) => &[Method::None],
        };
        Ok(Some(Registered {
            id: client.id.clone(),
            secret: client.secret.clone(),
            method: match wanted {
                // A public client does not authenticate, so the server need not support a method.
                [Method::None] => Method::None,
                wanted => Method::choose(server, wanted)?,
            },
            redirect_uri: None,
            secret_expires: 0,
            by: By::Hand,
        }))
    }

    /// Returns the client that is described by a metadata document.
    fn document(&self, server: &ServerMetadata) -> Result<Option<Registered>, OAuthError> {
        let Some(url) = &self.settings.document else { return Ok(None) };
        if !server.client_id_metadata_document_supported {
            return Ok(None);
        }
        if !Place::parse(url).is_some_and(|place| place.is_tls() && !place.path().is_empty()) {
            return Err(OAuthError::BadDocument { url: url.clone() });
        }
        let method = match &self.settings.document_key {
            None => Method::None,
            Some(_) => match Method::choose(server, &[Method::Key]) {
                Ok(method) => method,
                // The document requires authentication with its key. Without it, dynamic
                // registration is used.
                Err(_) if server.registration_endpoint.is_some() => return Ok(None),
                Err(error) => return Err(error),
            },
        };
        Ok(Some(Registered {
            id: url.clone(),
            secret: None,
            method,
            redirect_uri: None,
            secret_expires: 0,
            by: By::Document,
        }))
    }

    /// Returns the client that was dynamically registered with this server.
    pub(super) async fn registered(
        &self,
        server: &ServerMetadata,
    ) -> Result<Option<Registered>, OAuthError> {
        let kept = self.get(&registration(&server.issuer)).await?;
        Ok(kept.as_ref().and_then(Registered::read))
    }

    /// Deletes a dynamic registration that the server no longer knows. The server either returns an
    /// error, or shows a page without a redirect, so that the login times out. The next login
    /// registers again.
    pub(super) async fn disown(
        &self,
        server: &ServerMetadata,
        client: &Registered,
        error: &OAuthError,
    ) -> Result<(), OAuthError> {
        let is_unknown = match error {
            OAuthError::Refused { response, .. } => response.code == "invalid_client",
            OAuthError::Login(_) => true,
            _ => false,
        };
        match is_unknown && client.by == By::Itself {
            true => self.remove(&registration(&server.issuer)).await,
            false => Ok(()),
        }
    }
}

/// Returns the store key of a registration.
fn registration(issuer: &str) -> String {
    format!("client {issuer}")
}
