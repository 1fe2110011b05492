//! Creates tasks: from a call that has not started, from a running inline call, and from a finished
//! call.

use std::{fmt, sync::Arc};

use outlive_wire::RawJson;
use tokio::sync::oneshot;

use super::{
    capacity::Slot,
    detach_on_drop::DetachOnDrop,
    error::CreateError,
    events::EngineEvent,
    handle::Engine,
    runner::{TaskRun, Work},
    start,
    state::EngineState,
    unacknowledged::UnacknowledgedTask,
};
use crate::{
    JournalSnapshot,
    store::{
        Changes, Charge, ClaimedTask, CreateOutcome, Lease, NewTask, StoreError, TaskOutcome,
        Transition,
    },
};

/// Result of a promotion.
pub enum Promotion {
    /// The run is now a task.
    Task(UnacknowledgedTask),
    /// The run stays inline and returns to the caller.
    Refused(Work, CreateError),
}

impl Engine {
    /// Creates a task. The task starts immediately if this process has a free slot; otherwise it
    /// waits in the store.
    ///
    /// Dropping the future does not stop the creation. The engine then drops the
    /// [`UnacknowledgedTask`].
    ///
    /// # Errors
    ///
    /// Returns an error if the store rejects the task, or if the store does not confirm the
    /// creation.
    pub async fn create(&self, mut task: NewTask) -> Result<UnacknowledgedTask, CreateError> {
        let engine = &self.0;
        // A task with an idempotency key is queued. If the store does not confirm the creation, a
        // retry finds the task, which must then not depend on this worker.
        // A task with an open input request is parked.
        let starts = task.idempotency.is_none() && task.input_requests.is_empty();
        let slot = starts.then(|| engine.slot(&task.principal)).flatten();
        task.worker =
            slot.as_ref().map(|_| (engine.worker_id.clone(), engine.config.lease_duration));
        // Boxed, because each of the futures below would reserve space for the task.
        let task = Box::new(task);
        // The creation finishes even if the caller disconnects. Otherwise a store with several
        // connections could execute the cancellation before the creation.
        match slot {
            Some(slot) => DetachOnDrop::new(Arc::clone(engine).create_and_start(task, slot)).await,
            None => DetachOnDrop::new(Arc::clone(engine).create_queued(task)).await,
        }
    }

    /// Promotes a run to a task. The run continues in this process without a restart.
    pub fn promote(&self, task: NewTask, run: TaskRun) -> oneshot::Receiver<Promotion> {
        let (reply, answer) = oneshot::channel();
        let engine = Arc::clone(&self.0);
        let span = start::run_span(&engine, &task.id, &task.tool);
        // Registered before this method returns, so that a drain waits for the run.
        let registration = engine.register(&task.id);
        tokio::spawn(async move {
            let worker = Some((engine.worker_id.clone(), engine.config.lease_duration));
            let (id, principal) = (task.id.clone(), task.principal.clone());
            let mut unacknowledged = UnacknowledgedTask::new(&engine, &task);
            let created = engine.store.create(NewTask { worker, ..task }).await;
            let why = match created {
                Ok(CreateOutcome::Created { lease: Some(lease), at }) => {
                    run.journal.begin_writing();
                    engine.observe(&principal, &id, EngineEvent::Promoted);
                    unacknowledged.set_created(at);
                    let _share = engine.share(&principal);
                    // If the receiver is gone, the value returns here and is dropped.
                    drop(reply.send(Promotion::Task(unacknowledged)));
                    let (run, registration) = ((run, false), Some(registration));
                    return start::run(&engine, lease, principal, run, registration, span).await;
                }
                Ok(other) => {
                    unacknowledged.acknowledge();
                    refused(other)
                }
                Err(error) => {
                    // The task may exist. It must not run in parallel to the run that returns to
                    // the caller.
                    unacknowledged.revoke();
                    CreateError::Store(error)
                }
            };
            // The run returns to the caller. If the caller is gone, the run is dropped here.
            let _ = reply.send(Promotion::Refused(run.work, why));
        });
        answer
    }

    /// Stores a finished call as an ended task, for clients that repeat the call or read the rest
    /// of its result. A large result is stored in parts.
    ///
    /// # Errors
    ///
    /// Returns an error if the store rejects the task, or if the store does not confirm the
    /// creation.
    pub async fn store_finished(
        &self,
        task: NewTask,
        mut outcome: TaskOutcome,
    ) -> Result<(), CreateError> {
        let engine = &self.0;
        let unacknowledged = UnacknowledgedTask::new(engine, &task);
        let charge = Charge { principal: task.principal.clone(), max_bytes: task.max_bytes };
        let _registration = engine.register(&task.id);
        let worker = Some((engine.worker_id.clone(), engine.config.lease_duration));
        let lease = match engine.store.create(NewTask { worker, ..task }).await {
            Ok(CreateOutcome::Created { lease: Some(lease), .. }) => lease,
            Ok(other) => {
                unacknowledged.acknowledge();
                return Err(refused(other));
            }
            Err(error) => {
                unacknowledged.revoke();
                return Err(CreateError::Store(error));
            }
        };
        let result_parts = outcome.take_parts();
        let then = Transition::End { outcome, retention: engine.config.retention };
        let changes = Changes { charge: Some(charge), result_parts, ..Changes::default() };
        match engine.store.commit(&lease, &changes, &then).await {
            Ok(()) => {
                unacknowledged.acknowledge();
                Ok(())
            }
            Err(error) => {
                unacknowledged.revoke();
                Err(match error {
                    StoreError::BytesExceeded => CreateError::BytesExceeded,
                    error => CreateError::Store(error),
                })
            }
        }
    }
}

impl EngineState {
    async fn create_queued(
        self: Arc<Self>,
        task: Box<NewTask>,
    ) -> Result<UnacknowledgedTask, CreateError> {
        let (unacknowledged, _) = self.create(task).await?;
        Ok(unacknowledged)
    }

    /// Creates a task that starts in this process. The lease from the creation saves a claim.
    async fn create_and_start(
        self: Arc<Self>,
        task: Box<NewTask>,
        slot: Slot,
    ) -> Result<UnacknowledgedTask, CreateError> {
        let started = StartedTask::new(&task);
        let registration = self.register(&task.id);
        let (unacknowledged, lease) = self.create(task).await?;
        if let Some(lease) = lease {
            let span = start::run_span(&self, &lease.task, &started.tool);
            tokio::spawn(async move {
                start::start(&self, started.claimed(lease), Some(registration), span).await;
                drop(slot);
            });
        }
        Ok(unacknowledged)
    }

    /// Creates a task in the store.
    async fn create(
        self: &Arc<Self>,
        task: Box<NewTask>,
    ) -> Result<(UnacknowledgedTask, Option<Lease>), CreateError> {
        let (mut unacknowledged, has_lease) =
            (UnacknowledgedTask::new(self, &task), task.worker.is_some());
        match self.store.create(*task).await {
            Ok(CreateOutcome::Created { lease, at }) => {
                unacknowledged.set_created(at);
                unacknowledged.observe(EngineEvent::Created);
                Ok((unacknowledged, lease))
            }
            Ok(other) => {
                unacknowledged.acknowledge();
                Err(refused(other))
            }
            // The task may exist, and the drop cancels or leaves it. A task with a lease belongs to this
            // worker, which does not run it.
            Err(error) => {
                if has_lease {
                    unacknowledged.revoke();
                }
                Err(CreateError::Store(error))
            }
        }
    }
}

/// Parts of a new task that its first run needs.
struct StartedTask {
    principal: String,
    tool: String,
    request: RawJson,
    journal: JournalSnapshot,
}

impl StartedTask {
    fn new(task: &NewTask) -> Box<Self> {
        Box::new(Self {
            principal: task.principal.clone(),
            tool: task.tool.clone(),
            request: task.request.clone(),
            journal: task.journal.clone(),
        })
    }

    /// Returns the task in the form of a claimed task.
    fn claimed(self, lease: Lease) -> ClaimedTask {
        ClaimedTask {
            lease,
            principal: self.principal,
            tool: self.tool,
            request: self.request,
            journal: self.journal,
            started: false,
            crash_count: 0,
            cancel_requested: false,
            progress: None,
            ended: None,
            lost: false,
        }
    }
}

fn refused(created: CreateOutcome) -> CreateError {
    match created {
        CreateOutcome::Existing(id) => CreateError::Existing(id),
        CreateOutcome::KeyConflict => CreateError::KeyConflict,
        CreateOutcome::QuotaExceeded => CreateError::QuotaExceeded,
        CreateOutcome::BytesExceeded => CreateError::BytesExceeded,
        CreateOutcome::Created { .. } => CreateError::Store(StoreError::Unavailable(
            "the store returned no lease for a new task".to_owned(),
        )),
    }
}

impl fmt::Debug for Promotion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Task(task) => f.debug_tuple("Task").field(task.task()).finish(),
            Self::Refused(_, error) => f.debug_tuple("Refused").field(error).finish(),
        }
    }
}
