//! How tasks are made: of what has not begun, of a run that has, and of what is done.

use std::sync::Arc;

use outlive_wire::RawJson;
use tokio::sync::oneshot;

use super::{
    CreateError, Engine, EngineEvent, Inner, Promotion, TaskRun, UnacknowledgedTask,
    detach_on_drop::Waited, room::Slot, schedule,
};
use crate::{
    JournalSnapshot,
    store::{
        Changes, Charge, ClaimedTask, CreateOutcome, Lease, NewTask, StoreError, TaskOutcome,
        Transition,
    },
};

impl Engine {
    /// Makes a task that is run as soon as there is room for it: here and at once, if there is some.
    /// It is made, and cancelled then, even if whoever asked does not wait for it; unless it has a
    /// key to ask for it again.
    ///
    /// # Errors
    ///
    /// When it is not made, or nobody knows whether it was.
    pub async fn create(&self, mut task: NewTask) -> Result<UnacknowledgedTask, CreateError> {
        let inner = &self.0;
        // One with a key is queued: if nobody knows whether it was made, whoever asks again finds it,
        // and it must not be one that waits for us.
        let slot = task.idempotency.is_none().then(|| inner.slot(&task.principal)).flatten();
        task.worker = slot.as_ref().map(|_| (inner.worker.clone(), inner.config.lease_duration));
        // It goes through many hands from here on, each of which would have to make room for it.
        let task = Box::new(task);
        // Waited for whether its caller stays or not: where there are several ways to a store, a
        // cancellation might overtake it. If nobody stayed, it is cancelled.
        match slot {
            Some(slot) => Waited::new(Arc::clone(inner).make_and_begin(task, slot)).await,
            None => Waited::new(Arc::clone(inner).make_queued(task)).await,
        }
    }

    /// Makes a task of a run that has begun. The run goes on here; it is not begun again.
    pub fn promote(&self, task: NewTask, run: TaskRun) -> oneshot::Receiver<Promotion> {
        let (reply, answer) = oneshot::channel();
        let inner = Arc::clone(&self.0);
        tokio::spawn(async move {
            let worker = Some((inner.worker.clone(), inner.config.lease_duration));
            let (id, principal) = (task.id.clone(), task.principal.clone());
            let mut untold = UnacknowledgedTask::of(&inner, &task);
            let expected = inner.expect(&id);
            let created = inner.store.create(NewTask { worker, ..task }).await;
            let why = match created {
                Ok(CreateOutcome::Created { lease: Some(lease), at }) => {
                    run.journal.begin_writing();
                    inner.saw(&principal, &id, EngineEvent::Adopted);
                    untold.was_made(at);
                    let _share = inner.share(&principal);
                    // If nobody waits for it any more it comes back, and is cancelled.
                    drop(reply.send(Promotion::Task(untold)));
                    return inner.run(lease, principal, run, Some(expected)).await;
                }
                Ok(other) => {
                    untold.acknowledge();
                    refused(other)
                }
                Err(error) => {
                    // It may be there all the same, and must not run beside what goes back.
                    untold.never_was();
                    CreateError::Store(error)
                }
            };
            // The run goes back to whoever had it; if nobody is there any more, it ends here.
            let _ = reply.send(Promotion::Refused(run.work, why));
        });
        answer
    }

    /// Keeps what has been done as a task that has ended, for those who ask for it again.
    ///
    /// # Errors
    ///
    /// When it is not kept, or nobody knows whether it was.
    pub async fn store_finished(
        &self,
        task: NewTask,
        outcome: TaskOutcome,
    ) -> Result<(), CreateError> {
        let inner = &self.0;
        let untold = UnacknowledgedTask::of(inner, &task);
        let charge = Charge { principal: task.principal.clone(), max_bytes: task.max_bytes };
        let _expected = inner.expect(&task.id);
        let worker = Some((inner.worker.clone(), inner.config.lease_duration));
        let lease = match inner.store.create(NewTask { worker, ..task }).await {
            Ok(CreateOutcome::Created { lease: Some(lease), .. }) => lease,
            Ok(other) => {
                untold.acknowledge();
                return Err(refused(other));
            }
            Err(error) => {
                untold.never_was();
                return Err(CreateError::Store(error));
            }
        };
        let then = Transition::End { outcome, retention: inner.config.retention };
        let changes = Changes { charge: Some(charge), ..Changes::default() };
        match inner.store.commit(&lease, &changes, &then).await {
            Ok(()) => {
                untold.acknowledge();
                Ok(())
            }
            Err(error) => {
                untold.never_was();
                Err(match error {
                    StoreError::OverBytes => CreateError::OverBytes,
                    error => CreateError::Store(error),
                })
            }
        }
    }
}

impl Inner {
    async fn make_queued(
        self: Arc<Self>,
        task: Box<NewTask>,
    ) -> Result<UnacknowledgedTask, CreateError> {
        let (untold, _) = self.make(task).await?;
        Ok(untold)
    }

    /// Makes a task that is run here: to be claimed it would have to be written, and read, once more.
    async fn make_and_begin(
        self: Arc<Self>,
        task: Box<NewTask>,
        slot: Slot,
    ) -> Result<UnacknowledgedTask, CreateError> {
        let begun = Begun::of(&task);
        let expected = self.expect(&task.id);
        let (untold, lease) = self.make(task).await?;
        if let Some(lease) = lease {
            tokio::spawn(async move {
                schedule::begin(&self, begun.claimed(lease), Some(expected)).await;
                drop(slot);
            });
        }
        Ok(untold)
    }

    /// Makes a task.
    async fn make(
        self: &Arc<Self>,
        task: Box<NewTask>,
    ) -> Result<(UnacknowledgedTask, Option<Lease>), CreateError> {
        let (mut untold, is_held) = (UnacknowledgedTask::of(self, &task), task.worker.is_some());
        match self.store.create(*task).await {
            Ok(CreateOutcome::Created { lease, at }) => {
                untold.was_made(at);
                untold.saw(EngineEvent::Created);
                Ok((untold, lease))
            }
            Ok(other) => {
                untold.acknowledge();
                Err(refused(other))
            }
            // It may be there all the same: it is cancelled then. If it has a worker that is us, and
            // we do not run it.
            Err(error) => {
                if is_held {
                    untold.never_was();
                }
                Err(CreateError::Store(error))
            }
        }
    }
}

/// What a run needs of a task that is made here.
struct Begun {
    principal: String,
    kind: String,
    request: RawJson,
    journal: JournalSnapshot,
}

impl Begun {
    fn of(task: &NewTask) -> Box<Self> {
        Box::new(Self {
            principal: task.principal.clone(),
            kind: task.tool.clone(),
            request: task.request.clone(),
            journal: task.journal.clone(),
        })
    }

    /// As if it had been claimed.
    fn claimed(self, lease: Lease) -> ClaimedTask {
        ClaimedTask {
            lease,
            principal: self.principal,
            tool: self.kind,
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
        CreateOutcome::Existing(id) => CreateError::Before(id),
        CreateOutcome::KeyConflict => CreateError::OtherRequest,
        CreateOutcome::QuotaExceeded => CreateError::OverQuota,
        CreateOutcome::OverBytes => CreateError::OverBytes,
        CreateOutcome::Created { .. } => {
            CreateError::Store(StoreError::Unavailable("it gave no lease".to_owned()))
        }
    }
}
