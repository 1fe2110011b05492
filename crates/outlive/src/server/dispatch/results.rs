//! Resources of stored results: `outlive://results/…`, for clients that got a cut result.
//!
//! The template is listed for clients without tasks, if bridging is on. A result belongs to the
//! principal of its task: a foreign or deleted result is an unknown resource.

use std::sync::{Arc, LazyLock};

use outlive_protocol::{Call, CallFuture, MethodResult, Outcome, ProtocolError};
use outlive_wire::{CacheHints, CacheScope, ReadResourceResult, ResourceTemplate};

use crate::server::{
    dispatch::core::ServerCore,
    env::{environment::Env, task_error::unavailable},
    exec::plan::is_bridged,
    results::{
        body::ResultReader,
        error::ReadError,
        range::{ResultUri, TEMPLATE},
        read::contents,
    },
    tasks::lookup::slow_down,
};

/// Returns whether the server stores results for clients that read them as resources.
pub(crate) fn are_served(core: &ServerCore) -> bool {
    core.env.hosts().is_some()
}

/// Returns whether the template is listed for the client of a call.
pub(crate) fn are_listed(core: &ServerCore, call: &Call) -> bool {
    let hosts = core.env.hosts();
    hosts.is_some_and(|hosts| is_bridged(call, hosts))
}

/// Returns the template to list.
pub(crate) fn template() -> Arc<ResourceTemplate> {
    Arc::clone(&LISTED)
}

static LISTED: LazyLock<Arc<ResourceTemplate>> = LazyLock::new(|| {
    let template = ResourceTemplate::new(TEMPLATE, "result").with_description(
        "A result that was cut. from and bytes select bytes, line and lines select lines; at is a \
         JSON pointer, with which from and bytes count elements.",
    );
    Arc::new(template)
});

/// Starts a read of a stored result. Returns `None` if the URI is not one of a result.
pub(crate) fn read(core: &ServerCore, call: &Arc<Call>, uri: &str) -> Option<CallFuture> {
    if !are_served(core) || !ResultUri::is_ours(uri) {
        return None;
    }
    let (env, call, uri) = (Arc::clone(&core.env), Arc::clone(call), uri.to_owned());
    Some(Box::pin(async move {
        let contents = match read_range(&env, &call, &uri).await {
            Ok(Ok(contents)) => contents,
            Ok(Err(ReadError::Unknown)) => return Err(ProtocolError::UnknownResource { uri }),
            Ok(Err(ReadError::Range(reason))) => return Err(ProtocolError::invalid_params(reason)),
            Ok(Err(ReadError::Store(error))) => return Err(unavailable(&error)),
            Err(error) => return Err(error),
        };
        let result = ReadResourceResult::new([contents]);
        // The result of a task never changes, but only its principal may see it.
        let cache = CacheHints { ttl_ms: env.cache.ttl_ms, cache_scope: CacheScope::Private };
        Ok(Outcome::Complete(MethodResult::Resource(result, cache)))
    }))
}

async fn read_range(
    env: &Env,
    call: &Call,
    uri: &str,
) -> Result<Result<outlive_wire::ResourceContents, ReadError>, ProtocolError> {
    let tasks = env.tasks()?;
    let ResultUri { task, block, range } = match ResultUri::parse(uri) {
        Ok(parsed) => parsed,
        Err(error) => return Ok(Err(error)),
    };
    slow_down(env, tasks, call, &task)?;
    let (principal, store) = (call.principal().key(), &**tasks.engine().store());
    let record = store.get(principal, &task).await.map_err(|error| unavailable(&error))?;
    let outcome = record.as_ref().and_then(|record| record.outcome.as_ref());
    let reader =
        outcome.and_then(|outcome| ResultReader::from_outcome(store, principal, &task, outcome));
    let Some(reader) = reader else {
        env.counters.lookups_denied.add(1);
        tasks.count(call, &task, "look-up-denied");
        return Ok(Err(ReadError::Unknown));
    };
    Ok(contents(&reader, uri, block, &range).await)
}
