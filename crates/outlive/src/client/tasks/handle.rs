//! Handle of a tool call that may be a task.

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

/// Handle of a tool call that may be a task.
///
/// Dropping it does not cancel the task, unless the call uses `cancel_on_drop`.
#[derive(Debug)]
pub struct TaskHandle {
    pub(super) core: Arc<Core>,
    pub(super) record: Record,
    pub(super) state: State,
    pub(super) immediate: Option<String>,
    cancels_on_drop: bool,
    /// Set if all input requests of the call are events.
    pub(super) event_mode: Option<Box<EventMode>>,
}

#[derive(Debug)]
pub(super) enum State {
    /// The call runs while its events are read.
    Starting(Starting<TaskHandle>),
    /// A task, with the version rules that created it.
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

    /// Returns the handle of a saved call. Fails if the call may have executed.
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

    /// Returns a handle of a task by its ID. The handle is not saved.
    pub(crate) fn by_id(core: &Arc<Core>, rules: &'static VersionRules, id: String) -> Self {
        let task = SavedTask { id, version: rules.version.to_string(), ttl: None, poll: None };
        let account = core.settings.account.clone();
        let saved = SavedCall::of_task(core.dispatch.label(), account, task.clone());
        Self::of(core, Record::new(None, saved), State::Task(task, rules, None))
    }

    /// Saves a call that became a task and returns its handle.
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
        tracing::debug!(task_id = saved.id, "a call became a task");
        record.change(|call| call.stage = CallStage::Task(saved.clone())).await?;
        // An ended task is polled immediately.
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

    /// Returns the task ID, or `None` if the call did not become a task.
    pub fn task_id(&self) -> Option<&str> {
        match &self.state {
            State::Task(task, ..) => Some(&task.id),
            _ => None,
        }
    }

    /// Returns the text that the server provides for the model while the task runs.
    pub fn immediate_response(&self) -> Option<&str> {
        self.immediate.as_deref()
    }

    /// Returns whether the outcome is known.
    pub fn is_terminal(&self) -> bool {
        !matches!(self.state, State::Task(..) | State::Starting(_))
    }

    /// Waits for the result. Input requests go to the input handler. Cancel safe.
    ///
    /// # Errors
    ///
    /// If the task failed, was cancelled, or no longer exists.
    pub async fn wait(&mut self) -> Result<CallToolResult> {
        if self.event_mode.is_some() {
            return Box::pin(self.wait_with_handler()).await;
        }
        match &mut self.state {
            State::Starting(_) => {
                Err(ClientError::Unanswered("the call has not started".to_owned()).into())
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

    /// Sets whether input requests go to the input handler or are events.
    pub(super) fn set_answering(&mut self, answers: bool) {
        if let State::Task(_, _, Some(drive)) = &mut self.state {
            drive.set_answering(answers);
        }
    }

    /// Sets whether new input requests are held until [`TaskHandle::release_questions`].
    pub(super) fn hold_questions(&mut self, holds: bool) {
        if let State::Task(_, _, Some(drive)) = &mut self.state {
            drive.set_holding(holds);
        }
    }

    /// Returns whether input requests are held.
    pub(super) fn is_holding(&self) -> bool {
        matches!(&self.state, State::Task(_, _, Some(drive)) if drive.is_holding())
    }

    /// Releases the held input requests.
    pub(super) fn release_questions(&mut self) {
        if let State::Task(_, _, Some(drive)) = &mut self.state {
            drive.release();
        }
    }

    /// Returns the next event of the task. Cancel safe.
    pub(crate) async fn drive_on(&mut self) -> Result<TaskEvent> {
        let reads_requests = self.reads_requests();
        let event = match &mut self.state {
            State::Starting(_) => {
                return Err(ClientError::Unanswered("the call has not started".to_owned()).into());
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
            Err(error) => Err(self.note(Err(error)).expect_err("`note` returns errors unchanged")),
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

    /// Polls the task once. Returns `None` if the call is not a task or its outcome is known.
    ///
    /// # Errors
    ///
    /// If the task no longer exists or the server is unreachable.
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

    /// Fetches the segments emitted after sequence number `after`. Returns an empty list if the
    /// call is not a task or its outcome is known. Also empty if client or server lacks the
    /// extension for [`partial_results`](crate::client::ClientBuilder::partial_results).
    ///
    /// Segments emitted before an input request are available as soon as the request is.
    ///
    /// # Errors
    ///
    /// If the task no longer exists or the server is unreachable.
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

    /// Turns input requests into events for [`TaskHandle::events`].
    pub(super) fn stop_answering(&mut self) {
        if let State::Task(task, rules, drive) = &mut self.state {
            let drive = drive.get_or_insert_with(|| {
                Box::new(Drive::new(&self.core, self.record.clone(), rules, task, true))
            });
            drive.set_answering(false);
        }
    }

    /// Responds to an input request of the task. Saves the response, then sends it until the server
    /// acknowledges it.
    ///
    /// # Errors
    ///
    /// If the response does not match the request, or the task no longer exists.
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

    /// Cancels the task. The task may still complete; [`TaskHandle::wait`] returns the outcome.
    ///
    /// # Errors
    ///
    /// If the server is unreachable.
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

    /// Cancels the task and deletes the saved call.
    ///
    /// # Errors
    ///
    /// If the server is unreachable.
    pub async fn cancel_and_detach(mut self) -> Result<()> {
        self.cancel().await?;
        self.delete_saved().await
    }

    /// Returns the call as data. Another process can [`resume`](crate::client::Client::resume) it.
    pub fn to_saved(&self) -> impl Future<Output = SavedCall> + Send + use<> {
        let record = self.record.clone();
        async move { record.saved().await }
    }

    /// Deletes the saved call. Use it after the result has been processed.
    ///
    /// # Errors
    ///
    /// If the saved call still exists.
    pub fn delete_saved(&self) -> impl Future<Output = Result<()>> + Send + use<> {
        let record = self.record.clone();
        async move { record.erase().await }
    }

    /// Sets whether dropping this handle cancels a task that has not ended.
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
                    tracing::warn!(task_id = id, %error, "cannot cancel a task");
                }
            });
        }
    }
}
