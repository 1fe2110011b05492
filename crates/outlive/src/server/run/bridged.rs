//! [`BridgedCall`]: the identity of a call whose client has no tasks.

use std::{sync::Arc, time::Duration};

use outlive_protocol::{Call, ProtocolError};
use outlive_tasks::store::Bridge;

use crate::server::{
    env::{environment::Env, task_backend::TaskBackend},
    hosts::Hosts,
    run::{bound_args, replay_policy::ReplayPolicy},
    sessions::charge::digest,
};

/// Identity of a bridged call. Equal calls have the same one.
#[derive(Clone, Debug)]
pub(crate) struct BridgedCall {
    /// Part of the principal whose calls can join the run; `None` if no call can.
    pub(crate) scope: Option<String>,
    /// Digest of principal, tool and arguments.
    pub(crate) fingerprint: Arc<str>,
    abandon_timeout: Duration,
}

impl BridgedCall {
    /// Returns the identity of a call.
    pub(crate) fn new(
        env: &Env,
        hosts: &Hosts,
        call: &Call,
        replay: &ReplayPolicy,
    ) -> Result<Self, ProtocolError> {
        let fingerprint = bound_args::fingerprint(env, call, &replay.bound_args)?;
        let fingerprint = digest(&format!("{}\n{fingerprint}", call.principal().key()));
        Ok(Self {
            scope: scope(call),
            fingerprint: fingerprint.into(),
            abandon_timeout: hosts.abandon_after(env.profile.limits.request_state_ttl),
        })
    }

    /// Returns what the store records of the call.
    pub(crate) fn record(&self, tasks: &TaskBackend) -> Bridge {
        let worker = tasks.worker_id().clone();
        Bridge::new(self.scope.clone(), &*self.fingerprint, worker, self.abandon_timeout)
    }
}

/// Returns the part of the principal whose calls repeat each other and whose tasks are found
/// without an ID. One network address can stand for many anonymous clients, so only a session tells
/// these apart.
pub(crate) fn scope(call: &Call) -> Option<String> {
    match call.principal().is_anonymous() {
        false => Some(String::new()),
        true => {
            let session = call.session().and_then(|session| session.portable());
            session.map(|session| digest(&session.id))
        }
    }
}
