//! Who the client is to an authorization server: registered by hand, by a document, or by itself.

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
    /// The client for a login: registered by hand, else by a document, else by itself.
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

    /// The client that this server knows without being told: by hand, or by a document.
    pub(super) fn named(&self, server: &ServerMetadata) -> Result<Option<Registered>, OAuthError> {
        match self.configured(server)? {
            Some(client) => Ok(Some(client)),
            None => self.document(server),
        }
    }

    /// The client that was registered by hand.
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
                // Nothing has to be shown, so nothing has to be taken.
                [Method::None] => Method::None,
                wanted => Method::choose(server, wanted)?,
            },
            redirect_uri: None,
            secret_expires: 0,
            by: By::Hand,
        }))
    }

    /// The client that publishes a document about itself.
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
                // The document says that its key is shown, so where it cannot be it is of no use.
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

    /// The client as it has registered itself with this server; with another one it is nobody.
    pub(super) async fn registered(
        &self,
        server: &ServerMetadata,
    ) -> Result<Option<Registered>, OAuthError> {
        let kept = self.get(&registration(&server.issuer)).await?;
        Ok(kept.as_ref().and_then(Registered::read))
    }

    /// Forgets a registration that the server does not know any more: it says so, or it has shown a
    /// page from which nobody came back. The next login registers anew.
    pub(super) async fn disown(
        &self,
        server: &ServerMetadata,
        client: &Registered,
        error: &OAuthError,
    ) -> Result<(), OAuthError> {
        let is_unknown = match error {
            OAuthError::Refused { refusal, .. } => refusal.code == "invalid_client",
            OAuthError::Login(_) => true,
            _ => false,
        };
        match is_unknown && client.by == By::Itself {
            true => self.remove(&registration(&server.issuer)).await,
            false => Ok(()),
        }
    }
}

/// Where a registration is kept.
fn registration(issuer: &str) -> String {
    format!("client {issuer}")
}
