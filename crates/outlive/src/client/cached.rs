//! Results of requests, from the cache or from the server.

use std::sync::Arc;

use bytes::Bytes;
use outlive_protocol::IncomingKind;

use super::{
    attempt::Wanted,
    core::Core,
    error::{Error, Result},
    link::unexpected,
    send::{CallOutcome, converse},
};

/// A result from the cache or from the server.
#[derive(Debug)]
pub(crate) struct Cached(Bytes);

impl Cached {
    pub(crate) fn text(&self) -> &str {
        str::from_utf8(&self.0).unwrap_or("null")
    }

    /// Returns the cached result of a request if it is fresh, and sends the request otherwise.
    pub(crate) async fn fetch(core: &Arc<Core>, wanted: Wanted) -> Result<Self> {
        let cache = core.dispatch.cache();
        let caller = core.caller().await?;
        if let Some(kept) = cache.get(&wanted.method, &wanted.params, caller.as_deref()) {
            return Ok(Self(kept));
        }
        let key = (wanted.method.to_string(), wanted.params.clone());
        let before = cache.changes();
        let answered = match converse(core, wanted).await? {
            CallOutcome::Complete(answered) => answered,
            CallOutcome::Task(..) => {
                return Err(Error::broke("it returned a task for a request that cannot be a task"));
            }
        };
        answered.result()?;
        let IncomingKind::Result { result, .. } = answered.message.kind() else {
            return Err(unexpected(&answered.message));
        };
        let result = answered.message.part(result);
        // A result after input rounds belongs to this call, and an invalidated result is stale.
        if answered.rounds == 0 && !answered.here.rules.sessions && before == cache.changes() {
            cache.put(key, caller, &result);
        }
        Ok(Self(result))
    }
}
