//! Calls that survive the gateway: their requests to processes behind a supervisor.
//!
//! The journal of a task has the process and the ID of its request. The supervisor retains the
//! request before the task is committed, and knows the task after that: a request without a task is
//! harmless, and a task without its request is lost.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use outlive::{client::relay::RelayInput, server::Durable};
use outlive_jobs::{Attached, Retention};

use super::{
    journal::{PipePoint, Tracked},
    route::Reached,
};
use crate::upstream::{Connection, Lease, Supervised, Supervisor, TaskLabel, Ticket, id_of};

/// The request of a call to a process that survives the gateway.
#[derive(Clone)]
pub(super) struct Survival(Arc<Inner>);

struct Inner {
    supervisor: Arc<Supervisor>,
    supervised: Arc<Supervised>,
    request: u64,
    /// Time that the request survives without a gateway.
    time: Duration,
    is_retained: AtomicBool,
    is_labeled: AtomicBool,
}

impl Survival {
    /// Returns the next request of a call. Returns `None` if the call cannot be a task, or if the
    /// process ends with the gateway.
    pub(super) fn new(tracked: Tracked<'_>, connection: &Connection) -> Option<Self> {
        connection.supervised().filter(|_| tracked.may_continue())?;
        Self::of_request(tracked, connection, connection.client.next_request_id())
    }

    /// Returns a request that an earlier run has sent.
    pub(super) fn of_request(
        tracked: Tracked<'_>,
        connection: &Connection,
        request: u64,
    ) -> Option<Self> {
        let supervised = Arc::clone(connection.supervised()?);
        let supervisor = Arc::clone(supervisor(tracked.reached)?);
        let (is_retained, is_labeled) = (AtomicBool::new(false), AtomicBool::new(false));
        let time = tracked.timeout;
        let inner = Inner { supervisor, supervised, request, time, is_retained, is_labeled };
        Some(Self(Arc::new(inner)))
    }

    /// Returns the entry of the journal.
    pub(super) fn point(&self) -> PipePoint {
        PipePoint {
            machine: self.0.supervisor.machine().to_owned(),
            process: self.0.supervised.id().to_owned(),
            request: self.0.request,
        }
    }

    /// Returns the ID of the request.
    pub(super) fn request(&self) -> u64 {
        self.0.request
    }

    /// Retains the request of a task from the moment it is sent.
    pub(super) fn retain_next(&self, cx: &Durable) {
        let Some(label) = label(cx) else { return };
        self.0.is_retained.store(true, Ordering::Release);
        self.0.is_labeled.store(true, Ordering::Release);
        let retention = Retention { time: self.0.time, label: Some(label.text()) };
        self.0.supervised.retain_next(self.0.request, retention);
    }

    /// Retains the request, before its call becomes a task. The supervisor gets this even if the
    /// gateway is killed right after.
    pub(super) fn retain(&self) {
        if !self.0.is_retained.swap(true, Ordering::AcqRel) {
            self.0.supervised.sender.retain(self.0.request, self.0.time);
        }
    }

    /// Records the task of the request.
    pub(super) fn label(&self, cx: &Durable) {
        let Some(label) = label(cx) else { return };
        self.retain();
        if !self.0.is_labeled.swap(true, Ordering::AcqRel) {
            self.0.supervised.sender.label(self.0.request, &label.text());
        }
    }

    /// Records that the call carries an input request.
    pub(super) fn carry(&self, input: &RelayInput, number: u32) {
        self.0.supervised.sender.carry(self.0.request, &id_of(input), number);
    }

    /// Attaches to the request of an earlier run. Its input requests go to `ticket`. Returns `None` if
    /// the connection ends.
    pub(super) async fn attach(&self, ticket: &Ticket) -> Option<Attached> {
        let resumes = ticket.resumes();
        let prepare = move |attached: &Attached| resumes(&attached.inputs);
        self.0.supervised.attach(self.0.request, prepare).await
    }

    /// Closes the request after its response. That of a task stays until the task has ended, so that
    /// another run can get the response; `lease` keeps the process until then.
    pub(super) fn finish(self, cx: &Durable, lease: Lease) {
        let Inner { supervisor, is_retained, .. } = &*self.0;
        if !is_retained.load(Ordering::Acquire) {
            return;
        }
        let done = {
            let call = self.clone();
            move || {
                call.0.supervised.sender.done(call.0.request);
                drop(lease);
            }
        };
        match label(cx) {
            Some(task) => supervisor.finish(task, done),
            None => done(),
        }
    }
}

/// Returns the task of a call.
fn label(cx: &Durable) -> Option<TaskLabel> {
    let principal = cx.call().principal().key().to_owned();
    Some(TaskLabel { principal, task: cx.task_id()? })
}

/// Returns the supervisor of the processes of an upstream.
pub(super) fn supervisor(reached: &Reached) -> Option<&Arc<Supervisor>> {
    reached.member.runtime.supervisor()
}
