//! The stored form of calls that became tasks and of legacy sessions, so that another process can
//! resume them.

use std::{collections::BTreeSet, sync::Arc};

use bytestring::ByteString;
use outlive_wire::{LoggingLevel, OrderedMap, RawJson};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use crate::{
    Call, ChangeFilter, Era, MessageContext, Principal, Profile, ProtocolError, Scopes, Session,
    VersionRules, era,
};

/// Everything that a handler may read from a call, except the HTTP request.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StoredCall {
    /// Protocol version.
    version: String,
    /// The message, without the keys of `_meta` that a resumed call does not need.
    message: RawJson,
    /// Client capabilities of the legacy session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    capabilities: Option<RawJson>,
    /// Client info of the legacy session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    info: Option<RawJson>,
    /// Scopes of the caller when the call arrived.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    scopes: Vec<String>,
}

impl StoredCall {
    /// Creates the stored form of a call.
    ///
    /// # Errors
    ///
    /// Unexpected: every part was parsed from JSON before.
    pub fn of(call: &Call) -> serde_json::Result<Self> {
        let raw = |text: &str| serde_json::from_str::<RawJson>(text);
        let session = call.session();
        Ok(Self {
            version: call.rules().version.as_str().to_owned(),
            message: without_foreign_meta(&call.message)?,
            capabilities: session.map(|session| raw(session.client_capabilities())).transpose()?,
            info: session.and_then(|session| session.client_info()).map(raw).transpose()?,
            scopes: call.principal().scopes().iter().map(str::to_owned).collect(),
        })
    }

    /// Returns the arguments of the call, exactly as the client sent them.
    pub fn arguments(&self) -> Option<RawJson> {
        #[derive(Deserialize)]
        struct Message {
            params: Option<Params>,
        }
        #[derive(Deserialize)]
        struct Params {
            arguments: Option<RawJson>,
        }
        serde_json::from_str::<Message>(self.message.get()).ok()?.params?.arguments
    }

    /// Restores the call for its principal, with its original scopes.
    ///
    /// # Errors
    ///
    /// If the message is invalid or this crate no longer supports the version.
    pub fn restore(
        &self,
        principal: Principal,
        profile: &Profile,
    ) -> Result<Arc<Call>, ProtocolError> {
        let message = ByteString::from(self.message.get());
        let principal = principal.with_scopes(Scopes::of(&self.scopes));
        let request = era::Request::again(&message)
            .ok_or_else(|| ProtocolError::internal("a stored call is not a valid request"))?;
        // For an unknown version, the modern codec returns the right error.
        let rules =
            VersionRules::find(&self.version).unwrap_or_else(|| VersionRules::newest(Era::Modern));
        let session = rules.sessions.then(|| self.session(rules, principal.clone(), profile));
        let arrival = MessageContext { session, ..MessageContext::of(principal) };
        era::codec(rules.era).decode(rules, &request, arrival, &|_| false)
    }

    fn session(
        &self,
        rules: &'static VersionRules,
        principal: Principal,
        profile: &Profile,
    ) -> Arc<Session> {
        let text = |raw: &RawJson| Box::from(raw.get());
        let capabilities = self.capabilities.as_ref().map_or_else(|| "{}".into(), text);
        let info = self.info.as_ref().map(text);
        let feed = profile.bus.subscribe(ChangeFilter::default());
        Arc::new(Session::new(rules, principal, info, capabilities, feed))
    }
}

/// Maximum bytes of `_meta` in a stored call, keys and values together.
const MAX_META_BYTES: usize = 16 << 10;

/// Returns whether a stored call keeps a key of `_meta`: those of MCP, Outlive and trace
/// propagation.
fn is_stored(key: &str) -> bool {
    const NAMES: [&str; 4] = ["progressToken", "traceparent", "tracestate", "baggage"];
    const PREFIXES: [&str; 2] = ["io.modelcontextprotocol/", "dev.outlive/"];
    NAMES.contains(&key) || PREFIXES.iter().any(|prefix| key.starts_with(prefix))
}

/// Removes foreign keys from `params._meta`, and keys above the size limit. Does not copy the
/// removed values.
fn without_foreign_meta(message: &str) -> serde_json::Result<RawJson> {
    type Members<'a> = OrderedMap<&'a RawValue>;
    let whole = || serde_json::from_str(message);
    let member =
        |members: &Members<'_>, name: &str| members.0.iter().position(|(key, _)| key == name);
    let mut request: Members<'_> = serde_json::from_str(message)?;
    let Some(params_at) = member(&request, "params") else { return whole() };
    let mut params: Members<'_> = serde_json::from_str(request.0[params_at].1.get())?;
    let Some(meta_at) = member(&params, "_meta") else { return whole() };
    let mut meta: Members<'_> = serde_json::from_str(params.0[meta_at].1.get())?;
    let all = meta.0.len();
    let mut bytes = 0;
    meta.0.retain(|(key, value)| {
        let with_it = bytes + key.len() + value.get().len();
        let stays = is_stored(key) && with_it <= MAX_META_BYTES;
        bytes = if stays { with_it } else { bytes };
        stays
    });
    if meta.0.len() == all {
        return whole();
    }
    let meta = to_raw_value(&meta)?;
    params.0[meta_at].1 = &meta;
    let params = to_raw_value(&params)?;
    request.0[params_at].1 = &params;
    to_raw_value(&request)
}

/// The part of a legacy session that all replicas share. Running calls and application state stay
/// local to a process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StoredSession {
    /// Negotiated protocol version.
    version: String,
    /// Key of the principal.
    principal: String,
    capabilities: RawJson,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    info: Option<RawJson>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    log_level: Option<LoggingLevel>,
    /// Subscribed resources.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    resources: Vec<String>,
    /// Number of changes. The higher revision wins.
    #[serde(default)]
    revision: u64,
}

impl StoredSession {
    /// Creates the stored form of a session.
    ///
    /// # Errors
    ///
    /// Unexpected: every part was parsed from JSON before.
    pub fn of(session: &Session) -> serde_json::Result<Self> {
        let raw = |text: &str| serde_json::from_str::<RawJson>(text);
        // The revision is read first: a concurrent change is stored with the old revision, and again
        // with its own.
        let revision = session.revision();
        Ok(Self {
            version: session.rules().version.as_str().to_owned(),
            principal: session.principal().key().to_owned(),
            capabilities: raw(session.client_capabilities())?,
            info: session.client_info().map(raw).transpose()?,
            log_level: session.log_level(),
            resources: session.feed().resources().iter().map(|uri| uri.to_string()).collect(),
            revision,
        })
    }

    /// Returns whether the session belongs to a principal.
    pub fn belongs_to(&self, principal: &Principal) -> bool {
        self.principal == principal.key()
    }

    /// Restores the session. Returns `None` for another principal, and if the server no longer
    /// supports the version.
    pub fn restore(&self, principal: &Principal, profile: &Profile) -> Option<Arc<Session>> {
        if !self.belongs_to(principal) {
            return None;
        }
        let text = |raw: &RawJson| Box::from(raw.get());
        let known = era::Reopened {
            version: &self.version,
            client_info: self.info.as_ref().map(text),
            client_capabilities: text(&self.capabilities),
            resources: self.uris(),
        };
        let session = era::reopen_session(known, principal.clone(), profile)?;
        self.tell(&session);
        Some(Arc::new(session))
    }

    /// Applies newer stored data to a session. Returns `false` if the session is newer than the
    /// stored data.
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::without_foreign_meta;

    #[test]
    fn stored_call_keeps_no_foreign_meta() {
        let foreign = "x".repeat(1 << 20);
        let meta = json!({"com.example/blob": foreign, "progressToken": 7,
            "io.modelcontextprotocol/clientInfo": {"name": "c"}, "dev.outlive/idempotencyKey": "k"});
        let request = |meta: Value| {
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                "params": {"name": "t", "arguments": {"a": [1, 2]}, "_meta": meta}})
        };
        let stored = without_foreign_meta(&request(meta).to_string()).unwrap();
        assert!(stored.get().len() < 400, "{}", stored.get().len());
        let kept = json!({"progressToken": 7, "io.modelcontextprotocol/clientInfo": {"name": "c"},
            "dev.outlive/idempotencyKey": "k"});
        assert_eq!(serde_json::from_str::<Value>(stored.get()).unwrap(), request(kept));
    }

    #[test]
    fn stored_call_keeps_no_large_meta() {
        let long = "x".repeat(1 << 20);
        let meta = json!({"baggage": long, "io.modelcontextprotocol/clientInfo": {"name": long},
            "io.modelcontextprotocol/protocolVersion": "2026-07-28", "progressToken": 7});
        let request = |meta: Value| json!({"method": "tools/call", "params": {"_meta": meta}});
        let stored = without_foreign_meta(&request(meta).to_string()).unwrap();
        let kept =
            json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28", "progressToken": 7});
        assert_eq!(serde_json::from_str::<Value>(stored.get()).unwrap(), request(kept));
        let many: serde_json::Map<_, _> = (0..1_000)
            .map(|number| (format!("dev.outlive/{number}"), json!("x".repeat(100))))
            .collect();
        let stored = without_foreign_meta(&request(many.into()).to_string()).unwrap();
        assert!(stored.get().len() < 20 << 10, "{}", stored.get().len());
    }
}
