//! How tasks are made: of what has not begun, of a run that has, and of what is done.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::{Adopted, Engine, Inner, Refused, Seen, Started, Untold, schedule};
use crate::store::{Changes, Claimed, Created, Lease, NewTask, StoreError, TaskOutcome, Then};

impl Engine {
    /// Makes a task that is run as soon as there is room for it: here and at once, if there is some.
    /// It is made, and cancelled then, even if whoever asked does not wait for it; unless it has a
    /// key to ask for it again.
    ///
    /// # Errors
    ///
    /// When it is not made, or nobody knows whether it was.
    pub async fn create(&self, task: NewTask) -> Result<Untold, Refused> {
        let (reply, answer) = oneshot::channel();
        let inner = Arc::clone(&self.0);
        // Waited for whether its caller stays or not: where there are several ways to a store, a
        // cancellation might overtake it.
        tokio::spawn(async move {
            // One with a key is queued: if nobody knows whether it was made, whoever asks again
            // finds it, and it must not be one that waits for us.
            let slot = task.once.is_none().then(|| inner.slot()).flatten();
            let Some(slot) = slot else {
                let created = inner.make(NewTask { worker: None, ..task }).await;
                // If nobody waits for it any more it comes back, and is cancelled.
                return drop(reply.send(created.map(|(untold, _)| untold)));
            };
            // To be claimed it would have to be written, and read, once more.
            let (kind, request, journal) =
                (task.kind.clone(), task.request.clone(), task.journal.clone());
            let worker = Some((inner.worker.clone(), inner.config.lease));
            let principal = task.principal.clone();
            let expected = inner.expect(&task.id);
            let lease = match inner.make(NewTask { worker, ..task }).await {
                Ok((untold, lease)) => {
                    drop(reply.send(Ok(untold)));
                    lease
                }
                Err(refused) => return drop(reply.send(Err(refused))),
            };
            let Some(lease) = lease else { return };
            let claimed = Claimed {
                lease,
                principal,
                kind,
                request,
                journal,
                begun: false,
                crashes: 0,
                cancel_requested: false,
                progress: None,
                ended: None,
                lost: false,
            };
            schedule::begin(&inner, claimed, Some(expected)).await;
            drop(slot);
        });
        let lost = || Refused::Store(StoreError::Unavailable("it was not waited for".to_owned()));
        answer.await.unwrap_or_else(|_| Err(lost()))
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
        match inner.store.write(&lease, Changes::default(), then).await {
            Ok(()) => {
                untold.told();
                Ok(())
            }
            Err(error) => {
                untold.never_was();
                Err(Refused::Store(error))
            }
        }
    }
}

impl Inner {
    /// Makes a task.
    async fn make(self: &Arc<Self>, task: NewTask) -> Result<(Untold, Option<Lease>), Refused> {
        let (mut untold, is_held) = (Untold::of(self, &task), task.worker.is_some());
        match self.store.create(task).await {
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

fn refused(created: Created) -> Refused {
    match created {
        Created::Before(id) => Refused::Before(id),
        Created::OtherRequest => Refused::OtherRequest,
        Created::OverQuota => Refused::OverQuota,
        Created::New { .. } => {
            Refused::Store(StoreError::Unavailable("it gave no lease".to_owned()))
        }
    }
}
