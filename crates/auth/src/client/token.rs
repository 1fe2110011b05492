//! An access token, with all data to use and refresh it.

use std::{sync::Arc, time::SystemTime};

use outlive_transport::client::SecretString;
use serde::{Deserialize, Serialize};

use super::{
    dpop::{Prover, seconds},
    scopes::Scopes,
};

#[derive(Clone, Debug)]
pub(super) struct Held {
    /// Authorization server that issued the token. Only this server receives the refresh token.
    pub(super) issuer: String,
    /// Whether the issuer publishes no metadata.
    pub(super) is_assumed: bool,
    /// Client ID that the token was issued to.
    pub(super) client_id: String,
    /// Resource identifier of the token, as the server publishes it.
    pub(super) resource: String,
    pub(super) token: SecretString,
    /// Key that the token is bound to.
    pub(super) prover: Option<Arc<Prover>>,
    /// Expiry in Unix seconds.
    pub(super) expires: Option<u64>,
    pub(super) refresh: Option<SecretString>,
    /// Requested scopes, followed by the granted scopes if the server returned them.
    pub(super) requested: Scopes,
    pub(super) granted: Option<Scopes>,
    pub(super) since: Since,
}

/// Origin of the token, with its time in Unix seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Since {
    /// Read from the store.
    Kept,
    /// Issued for a refresh token.
    Refreshed(u64),
    /// Issued by a login or another grant.
    Granted(u64),
}

/// Seconds for which a token counts as new. If the server rejects a new token, another one would
/// not help.
const NEW: u64 = 60;

impl Held {
    /// Returns whether the token expires within `span` seconds.
    pub(super) fn expires_within(&self, span: u64, now: SystemTime) -> bool {
        self.expires.is_some_and(|expires| expires <= seconds(now) + span)
    }

    pub(super) fn is_just_granted(&self, now: SystemTime) -> bool {
        matches!(self.since, Since::Granted(at) if seconds(now) < at + NEW)
    }

    pub(super) fn is_just_refreshed(&self, now: SystemTime) -> bool {
        matches!(self.since, Since::Refreshed(at) if seconds(now) < at + NEW)
    }

    /// Returns the granted scopes, or the requested ones if the server did not return any.
    pub(super) fn scopes(&self) -> &Scopes {
        self.granted.as_ref().unwrap_or(&self.requested)
    }

    /// Serializes the token for the store.
    pub(super) fn write(&self) -> SecretString {
        let kept = Kept {
            issuer: self.issuer.clone(),
            is_assumed: self.is_assumed,
            client_id: self.client_id.clone(),
            resource: self.resource.clone(),
            access_token: self.token.expose().to_owned(),
            dpop_key: self.prover.as_ref().map(|prover| prover.kept().to_owned()),
            expires: self.expires,
            refresh_token: self.refresh.as_ref().map(|token| token.expose().to_owned()),
            requested: self.requested.clone(),
            granted: self.granted.clone(),
        };
        SecretString::new(serde_json::to_string(&kept).unwrap_or_default())
    }

    /// Reads a stored token. Returns `None` if it is invalid, so that the client acquires another
    /// one.
    pub(super) fn read(kept: &SecretString) -> Option<Self> {
        let kept: Kept = serde_json::from_str(kept.expose()).ok()?;
        let prover = match &kept.dpop_key {
            Some(key) => Some(Arc::new(Prover::read(key).ok()?)),
            None => None,
        };
        Some(Self {
            issuer: kept.issuer,
            is_assumed: kept.is_assumed,
            client_id: kept.client_id,
            resource: kept.resource,
            token: SecretString::new(kept.access_token),
            prover,
            expires: kept.expires,
            refresh: kept.refresh_token.map(SecretString::new),
            requested: kept.requested,
            granted: kept.granted,
            since: Since::Kept,
        })
    }
}

/// Stored form of a token. Has no `Debug`, because it contains secrets.
#[derive(Serialize, Deserialize)]
struct Kept {
    issuer: String,
    #[serde(default)]
    is_assumed: bool,
    client_id: String,
    resource: String,
    access_token: String,
    dpop_key: Option<String>,
    expires: Option<u64>,
    refresh_token: Option<String>,
    requested: Scopes,
    granted: Option<Scopes>,
}
