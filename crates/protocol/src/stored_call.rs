//! The stored form of calls that became tasks and of legacy sessions, so that another process can
//! resume them.

use std::{collections::BTreeSet, sync::Arc};

use bytestring::ByteString;
use outlive_wire::{Implementation, LoggingLevel, OrderedMap, RawJson};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use crate::{
    Call, Era, MessageContext, Principal, Profile, ProtocolError, Scopes, Session, VersionRules,
    era,
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
    /// Person of the caller, if it differs from the name of the principal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    person: Option<String>,
}

/// Members of `params` that are read from a stored call.
#[derive(Deserialize)]
struct StoredParams {
    arguments: Option<RawJson>,
    #[serde(rename = "_meta")]
    meta: Option<StoredMeta>,
}

/// Members of `_meta` that are read from a stored call.
#[derive(Deserialize)]
struct StoredMeta {
    #[serde(rename = "io.modelcontextprotocol/clientInfo")]
    client_info: Option<RawJson>,
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
            person: call.principal().set_person().map(str::to_owned),
        })
    }

    /// Returns the arguments of the call, exactly as the client sent them.
    pub fn arguments(&self) -> Option<RawJson> {
        self.params()?.arguments
    }

    /// Returns the name and version of the client. The client chooses them freely.
    pub fn client_info(&self) -> Option<Implementation> {
        let meta = || self.params()?.meta?.client_info;
        let info = self.info.clone().or_else(meta)?;
        serde_json::from_str(info.get()).ok()
    }

    fn params(&self) -> Option<StoredParams> {
        #[derive(Deserialize)]
        struct Message {
            params: Option<StoredParams>,
        }
        serde_json::from_str::<Message>(self.message.get()).ok()?.params
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
        let mut principal = principal.with_scopes(Scopes::of(&self.scopes));
        if let Some(person) = &self.person {
            principal = principal.with_person(person.as_str());
        }
        self.decode(&self.message, principal, profile)
    }

    /// Creates a new call that runs a task again, for a principal with its own scopes.
    ///
    /// Replaces the arguments if some are given. Removes all members that belong to the earlier
    /// request: its idempotency key, progress token, input responses and request state.
    ///
    /// # Errors
    ///
    /// If the message is invalid or this crate no longer supports the version.
    pub fn rerun(
        &self,
        principal: Principal,
        profile: &Profile,
        task: &str,
        arguments: Option<&RawValue>,
    ) -> Result<Arc<Call>, ProtocolError> {
        let message = again(self.message.get(), arguments).map_err(ProtocolError::internal)?;
        let mut call = self.decode(&message, principal, profile)?;
        let new = Arc::get_mut(&mut call);
        new.ok_or(ProtocolError::Internal)?.rerun_of = Some(task.into());
        Ok(call)
    }

    fn decode(
        &self,
        message: &RawValue,
        principal: Principal,
        profile: &Profile,
    ) -> Result<Arc<Call>, ProtocolError> {
        let message = ByteString::from(message.get());
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
        let feed = profile.bus.closing();
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

/// Returns the message of a call as a new request, with other arguments if some are given.
fn again(message: &str, arguments: Option<&RawValue>) -> serde_json::Result<RawJson> {
    type Members<'a> = OrderedMap<&'a RawValue>;
    const OF_ONE_REQUEST: [&str; 3] = ["inputResponses", "requestState", "task"];
    const META_OF_ONE_REQUEST: [&str; 2] = ["progressToken", "dev.outlive/idempotencyKey"];
    let mut request: Members<'_> = serde_json::from_str(message)?;
    let Some(params_at) = request.0.iter().position(|(key, _)| key == "params") else {
        return serde_json::from_str(message);
    };
    let mut kept: Option<RawJson> = None;
    let mut params: Members<'_> = serde_json::from_str(request.0[params_at].1.get())?;
    params.0.retain(|(key, _)| {
        !OF_ONE_REQUEST.contains(&&**key) && (arguments.is_none() || key != "arguments")
    });
    if let Some(arguments) = arguments {
        params.0.push(("arguments".into(), arguments));
    }
    if let Some(meta_at) = params.0.iter().position(|(key, _)| key == "_meta") {
        let mut meta: Members<'_> = serde_json::from_str(params.0[meta_at].1.get())?;
        meta.0.retain(|(key, _)| !META_OF_ONE_REQUEST.contains(&&**key));
        params.0[meta_at].1 = kept.insert(to_raw_value(&meta)?);
    }
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

    use super::{again, without_foreign_meta};

    #[test]
    fn rerun_keeps_no_member_of_the_earlier_request() {
        let meta = json!({"progressToken": 7, "dev.outlive/idempotencyKey": "k",
            "io.modelcontextprotocol/protocolVersion": "2026-07-28"});
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": "t", "arguments": {"a": 1.50}, "task": {"ttl": 1},
                "inputResponses": {}, "requestState": "s", "_meta": meta}})
        .to_string();
        let kept = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28"});
        let value = |raw: &str| serde_json::from_str::<Value>(raw).unwrap();
        let same = value(again(&message, None).unwrap().get());
        assert_eq!(same["params"], json!({"name": "t", "arguments": {"a": 1.50}, "_meta": kept}));
        let arguments = serde_json::value::to_raw_value(&json!({"a": 2})).unwrap();
        let other = value(again(&message, Some(&arguments)).unwrap().get());
        assert_eq!(other["params"], json!({"name": "t", "arguments": {"a": 2}, "_meta": kept}));
    }

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
