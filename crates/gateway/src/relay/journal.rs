//! Journal entries of a request to an upstream, so that another run continues it.
//!
//! | key | content | recorded |
//! |---|---|---|
//! | `at` | the request was started, and its process and ID if those survive the gateway | before it is sent, or in the commit that makes the call a task |
//! | `task` | the task of the upstream | before anything else depends on it |
//! | `stream` | the position in its response stream | at most once a second |
//!
//! Each key has the number of the round as its second part.

use std::time::Duration;

use outlive::{
    client::{relay::StreamPoint, tasks::TaskSnapshot},
    server::{Durable, Result, durable::Secret, tasks::OnCrash},
    wire::TaskSupport,
};
use serde::{Deserialize, Serialize};

use super::{route::Reached, times::Times};
use crate::upstream::unix_millis;

/// A request whose state the journal records.
#[derive(Clone, Copy)]
pub(super) struct Tracked<'a> {
    pub(super) cx: &'a Durable,
    pub(super) reached: &'a Reached,
    /// Number of the round.
    pub(super) number: usize,
    pub(super) timeout: Duration,
    pub(super) times: &'a Times,
    /// `None` for prompts and resources, which are never tasks.
    pub(super) policy: Option<CallPolicy>,
}

/// Policy of a tool for calls after a crash.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallPolicy {
    pub(crate) on_crash: OnCrash,
    pub(crate) max_attempts: u32,
    /// Whether the upstream runs the tool as a task, as its list says.
    pub(crate) task_support: Option<TaskSupport>,
}

/// The start of a request.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Started {
    /// Milliseconds since 1970.
    pub(super) at: u64,
    /// Whether the request has an idempotency key, so that it can be repeated.
    pub(super) keyed: bool,
    /// Number of earlier attempts.
    #[serde(default)]
    pub(super) attempt: u32,
    /// Request to a process that survives the gateway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) pipe: Option<PipePoint>,
}

/// A request to a process that survives the gateway.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PipePoint {
    /// Machine of the process.
    pub(super) machine: String,
    /// ID of the process.
    pub(super) process: String,
    /// ID of the request.
    pub(super) request: u64,
}

/// A task of the upstream that runs the call.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct UpstreamTask {
    pub(super) id: String,
    /// Protocol version that created it.
    pub(super) version: String,
    /// Whether that version is a legacy one.
    pub(super) is_legacy: bool,
    /// Milliseconds since 1970.
    pub(super) created_at: u64,
    /// TTL in milliseconds.
    pub(super) ttl: Option<u64>,
    /// Poll interval in milliseconds.
    pub(super) poll: Option<u64>,
}

impl Started {
    pub(super) fn new(keyed: bool, attempt: u32) -> Self {
        Self { at: unix_millis(), keyed, attempt, pipe: None }
    }

    /// Sets the request, if its process survives the gateway.
    pub(super) fn on(self, pipe: Option<PipePoint>) -> Self {
        Self { pipe, ..self }
    }
}

impl UpstreamTask {
    pub(super) fn new(snapshot: &TaskSnapshot, version: String, is_legacy: bool) -> Self {
        Self {
            id: snapshot.id.clone(),
            version,
            is_legacy,
            created_at: unix_millis(),
            ttl: snapshot.ttl,
            poll: snapshot.poll,
        }
    }

    /// Returns how long the task may still exist; `None` if it never expires.
    pub(super) fn remaining(&self) -> Option<Duration> {
        let ends = self.created_at.saturating_add(self.ttl?);
        Some(Duration::from_millis(ends.saturating_sub(unix_millis())))
    }
}

impl Tracked<'_> {
    /// Returns whether the call is a task or may become one, so that another run may continue it.
    pub(super) fn may_continue(&self) -> bool {
        self.policy.is_some() && (self.cx.is_task() || self.cx.may_become_task())
    }

    /// Returns whether a lost request may be sent again.
    pub(super) fn may_repeat(&self, started: &Started) -> bool {
        started.keyed || self.policy.is_some_and(|policy| policy.on_crash == OnCrash::Rerun)
    }

    pub(super) fn started(&self) -> Result<Option<Started>> {
        self.cx.get(started_key(self.number))
    }

    pub(super) fn task(&self) -> Result<Option<UpstreamTask>> {
        self.cx.get(task_key(self.number))
    }

    pub(super) fn stream(&self) -> Result<Option<StreamPoint>> {
        let point = self.cx.get::<Secret<StreamPoint>>(stream_key(self.number))?;
        Ok(point.map(Secret::into_inner))
    }

    /// Returns the number of attempts before this one.
    pub(super) fn attempt(&self) -> u32 {
        self.started().ok().flatten().map_or(0, |started| started.attempt)
    }
}

pub(super) fn started_key(round: usize) -> (&'static str, usize) {
    ("at", round)
}

/// Returns the key of an entry that is recorded before a request to a process is sent again.
pub(super) fn resent_key(round: usize, request: u64) -> String {
    format!("sent/{round}/{request}")
}

pub(super) fn task_key(round: usize) -> (&'static str, usize) {
    ("task", round)
}

pub(super) fn stream_key(round: usize) -> (&'static str, usize) {
    ("stream", round)
}
