//! Clients: their name and their redirect URIs.
//!
//! The ID of a registered client is its sealed registration, so that a registration needs no
//! storage and can be open to any client. The ID of a client with a metadata document is the URL of
//! the document.

use serde::{Deserialize, Serialize};

use super::{
    keys::{Keys, digest},
    redirect_uri::RedirectUri,
};

/// Seal context of registered client IDs.
const REGISTERED: &[&str] = &["client"];

/// Maximum length of a client ID.
const LONGEST: usize = 8 << 10;

/// Name and redirect URIs of a client.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Client {
    pub(super) name: Option<String>,
    pub(super) redirect_uris: Vec<String>,
}

impl Client {
    /// Returns the client ID of a registration.
    pub(super) fn seal(&self, keys: &Keys) -> Option<String> {
        keys.seal(self, REGISTERED)
    }

    /// Opens the client ID of a registration.
    pub(super) fn open(keys: &Keys, id: &str) -> Option<Self> {
        if id.len() > LONGEST { None } else { keys.open(id, REGISTERED) }
    }

    /// Returns the requested redirect URI if the client has registered it.
    pub(super) fn redirect<'a>(&self, asked: &'a str) -> Option<RedirectUri<'a>> {
        let asked = RedirectUri::parse(asked)?;
        let mut known = self.redirect_uris.iter().filter_map(|known| RedirectUri::parse(known));
        known.any(|known| known.admits(&asked)).then_some(asked)
    }
}

/// Returns whether a client ID is the URL of a document.
pub(super) fn is_document(id: &str) -> bool {
    id.contains("://")
}

/// Returns a short name of a client for tokens and principals. A registered client ID is too long
/// for that.
pub(super) fn short_name(id: &str) -> String {
    if is_document(id) { id.to_owned() } else { digest(id)[..22].to_owned() }
}
