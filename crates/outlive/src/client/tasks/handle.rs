//! A handle on a call that goes on by itself.

use std::sync::Arc;

use outlive_protocol::{VersionRules, era::client::TaskSnapshot};
use outlive_wire::{CallToolResult, ErrorObject, RawJson};

use super::{
    complete::{Drive, TaskEvent},
    event_mode::{EventMode, Starting},
    segments::emitted,
    send::{cancel, give},
    watch::look,
};
use crate::client::{
    call_store::{CallStage, Record, SavedCall, SavedTask},
    core::Core,
    error::{ClientError, Error, Result, ServerError},
    input::{InputKind, InputResponse, PendingInput, Settled, settle_with},
    segment::Segment,
};

/// A call of a tool that may have become a task.
///
/// Dropping it leaves the task alone, unless the call said `cancel_on_drop`.
#[derive(Debug)]
pub struct TaskHandle {
    pub(super) core: Arc<Core>,
    pub(super) record: Record,
    pub(super) state: State,
    pub(super) immediate: Option<String>,
    cancels_on_drop: bool,
    /// If all input requests of the call are events.
    pub(super) event_mode: Option<Box<EventMode>>,
}

#[derive(Debug)]
pub(super) enum State {
    /// The call is made while its events are read.
    Starting(Starting<TaskHandle>),
    /// A task, and the revision that it was made in.
    Task(SavedTask, &'static VersionRules, Option<Box<Drive>>),
    Done(Box<CallToolResult>),
    Failed(ErrorObject),
}

impl TaskHandle {
    pub(crate) async fn finished(
        core: &Arc<Core>,
        record: Record,
        result: CallToolResult,
    ) -> Result<Self> {
        record.change(|saved| saved.stage = CallStage::Done(Box::new(result.clone()))).await?;
        Ok(Self::of(core, record, State::Done(Box::new(result))))
    }

    /// A handle on a call that was saved; not on one whose answer is unknown.
    pub(crate) fn reopen(core: &Arc<Core>, saved: SavedCall) -> Result<Self> {
        let state = match saved.stage.clone() {
            CallStage::Calling(_) => return Err(ClientError::MaybeExecuted(saved.tool).into()),
            CallStage::Done(result) => State::Done(result),
            CallStage::Failed(error) => State::Failed(error),
            CallStage::Task(task) => {
                let rules = VersionRules::find(&task.version)
                    .ok_or_else(|| ClientError::NoCommonVersion(vec![task.version.clone()]))?;
                State::Task(task, rules, None)
            }
        };
        Ok(Self::of(core, Record::new(core.settings.notebook.clone(), saved), state))
    }

    /// A handle on a task by its ID, which is not saved.
    pub(crate) fn by_id(core: &Arc<Core>, rules: &'static VersionRules, id: String) -> Self {
        let task = SavedTask { id, version: rules.version.to_string(), ttl: None, poll: None };
        let account = core.settings.account.clone();
        let saved = SavedCall::of_task(core.dispatch.label(), account, task.clone());
        Self::of(core, Record::new(None, saved), State::Task(task, rules, None))
    }

    /// A call has become a task: noted before anybody is told.
    pub(crate) async fn begun(
        core: &Arc<Core>,
        record: Record,
        rules: &'static VersionRules,
        task: TaskSnapshot,
    ) -> Result<Self> {
        let saved = SavedTask {
            id: task.id.clone(),
            version: rules.version.to_string(),
            ttl: task.ttl,
            poll: task.poll,
        };
        tracing::debug!(task_id = saved.id, "a call has become a task");
        record.change(|call| call.stage = CallStage::Task(saved.clone())).await?;
        // One that is over already is looked at right away.
        let drive = Drive::new(core, record.clone(), rules, &saved, task.status.is_terminal());
        let mut handle = Self::of(core, record, State::Task(saved, rules, Some(Box::new(drive))));
        handle.immediate = task.immediate;
        Ok(handle)
    }

    pub(super) fn of(core: &Arc<Core>, record: Record, state: State) -> Self {
        Self {
            core: Arc::clone(core),
            record,
            state,
            immediate: None,
            cancels_on_drop: false,
            event_mode: None,
        }
    }

    /// The id of the task at the server; `None` if the call was answered without one.
    pub fn task_id(&self) -> Option<&str> {
        match &self.state {
            State::Task(task, ..) => Some(&task.id),
            _ => None,
        }
    }

    /// What the server lets the model be told while the task runs.
    pub fn immediate_response(&self) -> Option<&str> {
        self.immediate.as_deref()
    }

    /// Whether it is known what came of it.
    pub fn is_terminal(&self) -> bool {
        !matches!(self.state, State::Task(..) | State::Starting(_))
    }

    /// Waits for the result, and answers what the task asks meanwhile. Can be dropped, and called
    /// again.
    ///
    /// # Errors
    ///
    /// When the task failed, was cancelled, or is gone.
    pub async fn wait(&mut self) -> Result<CallToolResult> {
        if self.event_mode.is_some() {
            return Box::pin(self.wait_with_handler()).await;
        }
        match &mut self.state {
            State::Starting(_) => {
                Err(ClientError::Unanswered("the call is not made".to_owned()).into())
            }
            State::Done(result) => Ok((**result).clone()),
            State::Failed(error) => Err(ServerError::of(error.clone(), None).of_task().into()),
            State::Task(task, rules, drive) => {
                let drive = drive.get_or_insert_with(|| {
                    Box::new(Drive::new(&self.core, self.record.clone(), rules, task, true))
                });
                let result = drive.finish().await;
                self.note(result)
            }
        }
    }

    pub(super) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    /// Puts questions to the answerer, or leaves them to whoever reads the events.
    pub(super) fn set_answering(&mut self, answers: bool) {
        if let State::Task(_, _, Some(drive)) = &mut self.state {
            drive.set_answering(answers);
        }
    }

    /// Holds new questions until [`TaskHandle::release_questions`], or no longer.
    pub(super) fn hold_questions(&mut self, holds: bool) {
        if let State::Task(_, _, Some(drive)) = &mut self.state {
            drive.set_holding(holds);
        }
    }

    /// Whether questions are held.
    pub(super) fn is_holding(&self) -> bool {
        matches!(&self.state, State::Task(_, _, Some(drive)) if drive.is_holding())
    }

    /// Lets the questions go that are held.
    pub(super) fn release_questions(&mut self) {
        if let State::Task(_, _, Some(drive)) = &mut self.state {
            drive.release();
        }
    }

    /// The next thing that happens to the task. Can be dropped while it waits.
    pub(crate) async fn drive_on(&mut self) -> Result<TaskEvent> {
        let reads_requests = self.reads_requests();
        let event = match &mut self.state {
            State::Starting(_) => {
                return Err(ClientError::Unanswered("the call is not made".to_owned()).into());
            }
            State::Task(..) if reads_requests => Box::pin(self.drive_with_requests()).await,
            State::Done(result) => return Ok(TaskEvent::Done(result.clone())),
            State::Failed(error) => {
                return Err(ServerError::of(error.clone(), None).of_task().into());
            }
            State::Task(task, rules, drive) => {
                let drive = drive.get_or_insert_with(|| {
                    Box::new(Drive::new(&self.core, self.record.clone(), rules, task, true))
                });
                drive.next().await
            }
        };
        match event {
            Ok(TaskEvent::Done(result)) => {
                self.note(Ok(*result)).map(|result| TaskEvent::Done(Box::new(result)))
            }
            Err(error) => Err(self.note(Err(error)).expect_err("an error stays one")),
            other => other,
        }
    }

    fn note(&mut self, result: Result<CallToolResult>) -> Result<CallToolResult> {
        match &result {
            Ok(result) => self.state = State::Done(Box::new(result.clone())),
            Err(Error::Server(refused)) if !result.as_ref().is_err_and(Error::is_transient) => {
                self.state = State::Failed(ErrorObject {
                    code: refused.code,
                    message: refused.message.clone(),
                    data: refused.data.clone(),
                });
            }
            Err(_) => {}
        }
        result
    }

    /// Looks at the task once; `None` if the call is no task, or over as far as is known here.
    ///
    /// # Errors
    ///
    /// When the task is gone, or the server cannot be asked.
    pub fn get(&self) -> impl Future<Output = Result<Option<TaskSnapshot>>> + Send + use<> {
        let core = Arc::clone(&self.core);
        let task = match &self.state {
            State::Task(task, ..) => Some(task.id.clone()),
            _ => None,
        };
        async move {
            match task {
                Some(id) => look(&core, &id).await.map(Some),
                None => Ok(None),
            }
        }
    }

    /// Reads what the task has emitted by now, after the segment of this number. Empty if the call is no task, or
    /// over as far as is known here, or if the server or this client does not have the extension for
    /// [`partial_results`](crate::client::ClientBuilder::partial_results).
    ///
    /// What a task emitted before it asked is there as soon as its question is.
    ///
    /// # Errors
    ///
    /// When the task is gone, or the server cannot be asked.
    pub fn emitted(&self, after: u64) -> impl Future<Output = Result<Vec<Segment>>> + Send + use<> {
        let core = Arc::clone(&self.core);
        let task = self.task_id().map(str::to_owned);
        async move {
            match task {
                Some(id) => emitted(&core, &id, after).await,
                None => Ok(Vec::new()),
            }
        }
    }

    /// Makes input requests events, before [`TaskHandle::events`] reads them.
    pub(super) fn stop_answering(&mut self) {
        if let State::Task(task, rules, drive) = &mut self.state {
            let drive = drive.get_or_insert_with(|| {
                Box::new(Drive::new(&self.core, self.record.clone(), rules, task, true))
            });
            drive.set_answering(false);
        }
    }

    /// Answers a question of the task. It is noted before it is sent, and sent until it is taken.
    ///
    /// # Errors
    ///
    /// When the answer does not fit, or the task is gone.
    pub async fn respond(&mut self, question: &PendingInput, answer: InputResponse) -> Result<()> {
        if self.respond_to_event(question, &answer)? {
            return Ok(());
        }
        let key = question.key.clone().unwrap_or_default();
        let json: RawJson = match settle_with(&question.request, answer) {
            Settled::Refused(why)
                if matches!(question.request, InputKind::Form(_) | InputKind::Url(_)) =>
            {
                return Err(ClientError::Unanswered(why).into());
            }
            settled => Result::from(settled)?,
        };
        match &mut self.state {
            State::Task(_, _, Some(drive)) => drive.give(vec![(key, json)]).await,
            State::Task(task, ..) => {
                give(&self.core, &self.record, &task.id, vec![(key, json)]).await
            }
            _ => Ok(()),
        }
    }

    /// Asks the task to stop. It may still come to a result: [`TaskHandle::wait`] tells.
    ///
    /// # Errors
    ///
    /// When the server cannot be told.
    pub async fn cancel(&mut self) -> Result<()> {
        match &mut self.state {
            State::Starting(_) => {
                self.stop_starting();
                Ok(())
            }
            State::Task(_, _, Some(drive)) => drive.cancel().await,
            State::Task(task, ..) => cancel(&self.core, &task.id).await,
            _ => Ok(()),
        }
    }

    /// Asks the task to stop, and forgets it.
    ///
    /// # Errors
    ///
    /// When the server cannot be told.
    pub async fn cancel_and_detach(mut self) -> Result<()> {
        self.cancel().await?;
        self.delete_saved().await
    }

    /// The call as plain data: another process can [`resume`](crate::client::Client::resume) it.
    pub fn to_saved(&self) -> impl Future<Output = SavedCall> + Send + use<> {
        let record = self.record.clone();
        async move { record.saved().await }
    }

    /// Strikes the call from the notebook, if there is one: its result has been dealt with.
    ///
    /// # Errors
    ///
    /// When it is still there.
    pub fn delete_saved(&self) -> impl Future<Output = Result<()>> + Send + use<> {
        let record = self.record.clone();
        async move { record.erase().await }
    }

    /// Cancels the task when this handle is dropped before the task is over.
    pub fn set_cancel_on_drop(&mut self, cancels: bool) {
        self.cancels_on_drop = cancels;
    }
}

impl Drop for TaskHandle {
    fn drop(&mut self) {
        let State::Task(task, ..) = &self.state else { return };
        if let (true, Ok(runtime)) = (self.cancels_on_drop, tokio::runtime::Handle::try_current()) {
            let (core, id) = (Arc::clone(&self.core), task.id.clone());
            runtime.spawn(async move {
                if let Err(error) = cancel(&core, &id).await {
                    tracing::warn!(task_id = id, %error, "a task could not be cancelled");
                }
            });
        }
    }
}
