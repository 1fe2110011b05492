//! How tasks are made: of what has not begun, of a run that has, and of what is done.

use std::sync::Arc;

use outlive_wire::RawJson;
use tokio::sync::oneshot;

use super::{
    Adopted, Engine, Inner, Refused, Seen, Started, Untold, room::Slot, schedule, waited::Waited,
};
use crate::{
    Restored,
    store::{Changes, Charge, Claimed, Created, Lease, NewTask, StoreError, TaskOutcome, Then},
};

impl Engine {
    /// Makes a task that is run as soon as there is room for it: here and at once, if there is some.
    /// It is made, and cancelled then, even if whoever asked does not wait for it; unless it has a
    /// key to ask for it again.
    ///
    /// # Errors
    ///
    /// When it is not made, or nobody knows whether it was.
    pub async fn create(&self, mut task: NewTask) -> Result<Untold, Refused> {
        let inner = &self.0;
        // One with a key is queued: if nobody knows whether it was made, whoever asks again finds it,
        // and it must not be one that waits for us.
        let slot = task.once.is_none().then(|| inner.slot(&task.principal)).flatten();
        task.worker = slot.as_ref().map(|_| (inner.worker.clone(), inner.config.lease));
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
    pub fn adopt(&self, task: NewTask, run: Started) -> oneshot::Receiver<Adopted> {
        let (reply, answer) = oneshot::channel();
        let inner = Arc::clone(&self.0);
        tokio::spawn(async move {
            let worker = Some((inner.worker.clone(), inner.config.lease));
            let (id, principal) = (task.id.clone(), task.principal.clone());
            let mut untold = Untold::of(&inner, &task);
            let expected = inner.expect(&id);
            let created = inner.store.create(NewTask { worker, ..task }).await;
            let why = match created {
                Ok(Created::New { lease: Some(lease), at }) => {
                    run.journal.begin_writing();
                    inner.saw(&principal, &id, Seen::Adopted);
                    untold.was_made(at);
                    let _share = inner.share(&principal);
                    // If nobody waits for it any more it comes back, and is cancelled.
                    drop(reply.send(Adopted::Task(untold)));
                    return inner.run(lease, principal, run, Some(expected)).await;
                }
                Ok(other) => {
                    untold.told();
                    refused(other)
                }
                Err(error) => {
                    // It may be there all the same, and must not run beside what goes back.
                    untold.never_was();
                    Refused::Store(error)
                }
            };
            // The run goes back to whoever had it; if nobody is there any more, it ends here.
            let _ = reply.send(Adopted::Refused(run.work, why));
        });
        answer
    }

    /// Keeps what has been done as a task that has ended, for those who ask for it again.
    ///
    /// # Errors
    ///
    /// When it is not kept, or nobody knows whether it was.
    pub async fn keep_ended(&self, task: NewTask, outcome: TaskOutcome) -> Result<(), Refused> {
        let inner = &self.0;
        let untold = Untold::of(inner, &task);
        let charge = Charge { principal: task.principal.clone(), max_bytes: task.max_bytes };
        let _expected = inner.expect(&task.id);
        let worker = Some((inner.worker.clone(), inner.config.lease));
        let lease = match inner.store.create(NewTask { worker, ..task }).await {
            Ok(Created::New { lease: Some(lease), .. }) => lease,
            Ok(other) => {
                untold.told();
                return Err(refused(other));
            }
            Err(error) => {
                untold.never_was();
                return Err(Refused::Store(error));
            }
        };
        let then = Then::End { outcome, retention: inner.config.retention };
        let changes = Changes { charge: Some(charge), ..Changes::default() };
        match inner.store.write(&lease, &changes, &then).await {
            Ok(()) => {
                untold.told();
                Ok(())
            }
            Err(error) => {
                untold.never_was();
                Err(match error {
                    StoreError::OverBytes => Refused::OverBytes,
                    error => Refused::Store(error),
                })
            }
        }
    }
}

impl Inner {
    async fn make_queued(self: Arc<Self>, task: Box<NewTask>) -> Result<Untold, Refused> {
        let (untold, _) = self.make(task).await?;
        Ok(untold)
    }

    /// Makes a task that is run here: to be claimed it would have to be written, and read, once more.
    async fn make_and_begin(
        self: Arc<Self>,
        task: Box<NewTask>,
        slot: Slot,
    ) -> Result<Untold, Refused> {
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
    ) -> Result<(Untold, Option<Lease>), Refused> {
        let (mut untold, is_held) = (Untold::of(self, &task), task.worker.is_some());
        match self.store.create(*task).await {
            Ok(Created::New { lease, at }) => {
                untold.was_made(at);
                untold.saw(Seen::Created);
                Ok((untold, lease))
            }
            Ok(other) => {
                untold.told();
                Err(refused(other))
            }
            // It may be there all the same: it is cancelled then. If it has a worker that is us, and
            // we do not run it.
            Err(error) => {
                if is_held {
                    untold.never_was();
                }
                Err(Refused::Store(error))
            }
        }
    }
}

/// What a run needs of a task that is made here.
struct Begun {
    principal: String,
    kind: String,
    request: RawJson,
    journal: Restored,
}

impl Begun {
    fn of(task: &NewTask) -> Box<Self> {
        Box::new(Self {
            principal: task.principal.clone(),
            kind: task.kind.clone(),
            request: task.request.clone(),
            journal: task.journal.clone(),
        })
    }

    /// As if it had been claimed.
    fn claimed(self, lease: Lease) -> Claimed {
        Claimed {
            lease,
            principal: self.principal,
            kind: self.kind,
            request: self.request,
            journal: self.journal,
            begun: false,
            crashes: 0,
            cancel_requested: false,
            progress: None,
            ended: None,
            lost: false,
        }
    }
}

fn refused(created: Created) -> Refused {
    match created {
        Created::Before(id) => Refused::Before(id),
        Created::OtherRequest => Refused::OtherRequest,
        Created::OverQuota => Refused::OverQuota,
        Created::OverBytes => Refused::OverBytes,
        Created::New { .. } => {
            Refused::Store(StoreError::Unavailable("it gave no lease".to_owned()))
        }
    }
}
