//! A token that is there, with all that is needed to use it and to renew it.

use std::{sync::Arc, time::SystemTime};

use outlive_transport::client::SecretString;
use serde::{Deserialize, Serialize};

use super::{
    dpop::{Prover, seconds},
    scopes::Scopes,
};

#[derive(Clone, Debug)]
pub(super) struct Held {
    /// Who gave it. It goes nowhere else, and neither does what it can be renewed with.
    pub(super) issuer: String,
    /// Whether the issuer publishes nothing about itself.
    pub(super) is_assumed: bool,
    /// To whom it was given.
    pub(super) client_id: String,
    /// What it is for, as the server has written it.
    pub(super) resource: String,
    pub(super) token: SecretString,
    /// The key that it is bound to.
    pub(super) prover: Option<Arc<Prover>>,
    /// When it expires, in seconds.
    pub(super) expires: Option<u64>,
    pub(super) refresh: Option<SecretString>,
    /// What was asked for, and what was given if that is another thing.
    pub(super) requested: Scopes,
    pub(super) granted: Option<Scopes>,
    pub(super) since: Since,
}

/// Where it came from, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Since {
    /// From the store, some time ago.
    Kept,
    /// From a refresh token.
    Refreshed(u64),
    /// From a login, or what stands for one.
    Granted(u64),
}

/// For how long a token is brand-new: one that is refused then will not be better the next time.
const NEW: u64 = 60;

impl Held {
    /// Whether it expires within so many seconds.
    pub(super) fn expires_within(&self, span: u64, now: SystemTime) -> bool {
        self.expires.is_some_and(|expires| expires <= seconds(now) + span)
    }

    pub(super) fn is_just_granted(&self, now: SystemTime) -> bool {
        matches!(self.since, Since::Granted(at) if seconds(now) < at + NEW)
    }

    pub(super) fn is_just_refreshed(&self, now: SystemTime) -> bool {
        matches!(self.since, Since::Refreshed(at) if seconds(now) < at + NEW)
    }

    /// What it allows, as far as anybody has said.
    pub(super) fn scopes(&self) -> &Scopes {
        self.granted.as_ref().unwrap_or(&self.requested)
    }

    /// As it is kept.
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

    /// Reads what was kept; `None` if it cannot be read, and has to be got again.
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

/// How it is written. No `Debug`: all of it is secret.
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
