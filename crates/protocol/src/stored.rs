//! A call as it is kept while it is a task, so that another process can go on with it.

use std::sync::Arc;

use bytes::Bytes;
use outlive_wire::RawJson;
use serde::{Deserialize, Serialize};

use crate::{Arrival, Call, Fault, Principal, Profile, Session, Wants, era};

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
            message: serde_json::from_slice(&call.message)?,
            capabilities: session.map(|session| raw(session.client_capabilities())).transpose()?,
            info: session.and_then(|session| session.client_info()).map(raw).transpose()?,
        })
    }

    /// The call again, for the principal it belongs to.
    ///
    /// # Errors
    ///
    /// When it is of a revision that is not served any more.
    pub fn restore(&self, principal: Principal, profile: &Profile) -> Result<Arc<Call>, Fault> {
        let message = Bytes::copy_from_slice(self.message.get().as_bytes());
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
