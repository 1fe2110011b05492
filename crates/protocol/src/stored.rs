//! What is kept so that another process can go on with it: a call while it is a task, and a legacy
//! session.

use std::{collections::BTreeSet, sync::Arc};

use bytestring::ByteString;
use outlive_wire::{LoggingLevel, RawJson};
use serde::{Deserialize, Serialize};

use crate::{Arrival, Call, Fault, Principal, Profile, Scopes, Session, Wants, era};

/// Everything about a call that its handler may ask for, except the HTTP request that brought it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StoredCall {
    /// The revision it came in.
    version: String,
    /// The message, as it came.
    message: RawJson,
    /// What a legacy handshake said the client can do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    capabilities: Option<RawJson>,
    /// What a legacy handshake said the client is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    info: Option<RawJson>,
    /// What its caller had leave to do when it came.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    scopes: Vec<String>,
}

impl StoredCall {
    /// Keeps a call.
    ///
    /// # Errors
    ///
    /// None that is expected: a call has been read from JSON.
    pub fn of(call: &Call) -> serde_json::Result<Self> {
        let raw = |text: &str| serde_json::from_str::<RawJson>(text);
        let session = call.session();
        Ok(Self {
            version: call.era().version().as_str().to_owned(),
            message: serde_json::from_str(&call.message)?,
            capabilities: session.map(|session| raw(session.client_capabilities())).transpose()?,
            info: session.and_then(|session| session.client_info()).map(raw).transpose()?,
            scopes: call.principal().scopes().iter().map(str::to_owned).collect(),
        })
    }

    /// The call again, for the principal it belongs to, with the leave that it came with.
    ///
    /// # Errors
    ///
    /// When it is of a revision that is not served any more.
    pub fn restore(&self, principal: Principal, profile: &Profile) -> Result<Arc<Call>, Fault> {
        let message = ByteString::from(self.message.get());
        let principal = principal.with_scopes(Scopes::of(&self.scopes));
        let arrival = Arrival::of(principal.clone());
        era::restore(&self.version, &message, arrival, |era| {
            let text = |raw: &RawJson| Box::from(raw.get());
            let capabilities = self.capabilities.as_ref().map_or_else(|| "{}".into(), text);
            let info = self.info.as_ref().map(text);
            let feed = profile.bus.subscribe(Wants::default());
            Arc::new(Session::new(era, principal, info, capabilities, feed))
        })
    }
}

/// Everything about a legacy session that all replicas know. What its calls are doing and what the
/// application keeps in it belong to one process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StoredSession {
    /// The revision that was agreed on.
    version: String,
    /// Whose it is: the principal's key.
    principal: String,
    capabilities: RawJson,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    info: Option<RawJson>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    log_level: Option<LoggingLevel>,
    /// The resources it has subscribed to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    resources: Vec<String>,
    /// How often it has changed. Of two that differ, the one that changed more often counts.
    #[serde(default)]
    revision: u64,
}

impl StoredSession {
    /// Keeps a session.
    ///
    /// # Errors
    ///
    /// None that is expected: what a handshake said has been read from JSON.
    pub fn of(session: &Session) -> serde_json::Result<Self> {
        let raw = |text: &str| serde_json::from_str::<RawJson>(text);
        // Read first: a change that comes between is kept under the number before it, and once
        // more under its own.
        let revision = session.revision();
        Ok(Self {
            version: session.era().version().as_str().to_owned(),
            principal: session.principal().key().to_owned(),
            capabilities: raw(session.client_capabilities())?,
            info: session.client_info().map(raw).transpose()?,
            log_level: session.log_level(),
            resources: session.feed().resources().iter().map(|uri| uri.to_string()).collect(),
            revision,
        })
    }

    /// Whether it is this principal's.
    pub fn belongs_to(&self, principal: &Principal) -> bool {
        self.principal == principal.key()
    }

    /// The session again, for the principal it belongs to; `None` for anybody else, and when it is
    /// of a revision that is not served any more.
    pub fn restore(&self, principal: &Principal, profile: &Profile) -> Option<Arc<Session>> {
        if !self.belongs_to(principal) || !profile.eras.legacy {
            return None;
        }
        let text = |raw: &RawJson| Box::from(raw.get());
        let known = era::Reopened {
            version: &self.version,
            client_info: self.info.as_ref().map(text),
            client_capabilities: text(&self.capabilities),
            resources: self.uris(),
        };
        let session = era::reopen_session(known, principal.clone(), &profile.bus)?;
        self.tell(&session);
        Some(Arc::new(session))
    }

    /// Tells a session what it does not know yet. `false` if the session knows more than this.
    pub fn update(&self, session: &Session) -> bool {
        let known = session.revision();
        if self.revision > known {
            session.feed().set_resources(self.uris());
            self.tell(session);
        }
        self.revision >= known
    }

    fn tell(&self, session: &Session) {
        if let Some(level) = self.log_level {
            session.set_log_level(level);
        }
        session.set_revision(self.revision);
    }

    fn uris(&self) -> BTreeSet<Arc<str>> {
        self.resources.iter().map(|uri| Arc::from(uri.as_str())).collect()
    }
}
