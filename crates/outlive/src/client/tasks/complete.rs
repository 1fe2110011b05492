//! Drives a task to its end: observes it, responds to its input requests and fetches its outcome.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use outlive_protocol::{
    TaskDialect, VersionRules,
    era::client::{TaskSnapshot, TaskStatus},
};
use outlive_wire::{CallToolResult, ErrorObject, Method, RawJson};
use serde_json::value::to_raw_value;
use tokio::{task::JoinSet, time::Instant};

use super::{
    send::{RESENDS, cancel, give},
    watch::{Heard, Observer, about, gone},
};
use crate::client::{
    attempt::{Waiting, read},
    call_store::{CallStage, Record},
    core::Core,
    error::{ClientError, Error, Result, ServerError, ServerErrorKind, is_of_cancelled_task},
    input::{InputKind, InputOrigin, PendingInput, Settled, cancelled, settle},
    segment::Segment,
    send::send,
};

/// Input responses that are ready within this time are sent together.
const TOGETHER: Duration = Duration::from_millis(50);

/// Time during which an acknowledged input request may still be listed.
const LATE: Duration = Duration::from_secs(10);

/// An input request that the task has listed.
#[derive(Debug)]
struct Known {
    /// The request as JSON, for comparison.
    words: String,
    /// Whether a later snapshot did not list it.
    is_gone: bool,
    /// Number of snapshots that listed it again after that.
    returns: u32,
    /// Start of the time in which it is listed although the response is acknowledged.
    since: Option<Instant>,
}

impl Known {
    fn new(words: String) -> Self {
        Self { words, is_gone: false, returns: 0, since: None }
    }
}

/// Event of a task.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum TaskEvent {
    /// The status of the task.
    Status(Box<TaskSnapshot>),
    /// An input request of the task. Respond with
    /// [`TaskHandle::respond`](super::TaskHandle::respond).
    Input(Box<PendingInput>),
    /// A segment of the partial results, in order and without duplicates. Requires
    /// [`partial_results`](crate::client::ClientBuilder::partial_results) and the extension on the
    /// server. Segments that arrive too late are only in the result.
    Segment(Box<Segment>),
    /// The server is unreachable, with the reason. The client retries for
    /// [`max_total_timeout`](crate::client::ClientLimits::max_total_timeout), at most until the
    /// task expires.
    Unreachable(String),
    /// The server is reachable again.
    Reachable,
    /// The result of the task. Its content starts with the segments.
    Done(Box<CallToolResult>),
}

/// State machine that drives a task to its end.
pub(crate) struct Drive {
    core: Arc<Core>,
    record: Record,
    id: String,
    rules: &'static VersionRules,
    observer: Observer,
    /// Input requests with a response, sent or in progress, by key.
    known: BTreeMap<String, Known>,
    /// Failed attempts to fetch the result of an ended task.
    lost_results: u32,
    asking: JoinSet<(String, bool, Settled)>,
    deadline: Option<Instant>,
    /// End of the observation of a cancelled task.
    grace: Option<Instant>,
    /// Whether input requests go to the input handler. Otherwise they are events.
    answers: bool,
    /// Whether new input requests are held until the segments before them have been read.
    holds: bool,
    /// The snapshot with the held input requests.
    held: Option<TaskSnapshot>,
    /// Keys of input requests that are no longer held.
    released: BTreeSet<String>,
    /// Snapshot that is not processed yet. Stored here because the future of `next` may be dropped.
    seen: Option<TaskSnapshot>,
    /// Input responses that are not sent yet. Stored here for the same reason.
    settled: Vec<(String, bool, Settled)>,
}

impl std::fmt::Debug for Drive {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Drive").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Drive {
    pub(crate) fn new(
        core: &Arc<Core>,
        record: Record,
        rules: &'static VersionRules,
        task: &crate::client::call_store::SavedTask,
        at_once: bool,
    ) -> Self {
        // Measured with the local clock, because the clocks of client and server may differ.
        let deadline = task.ttl.map(|ttl| {
            let ttl = Duration::from_millis(ttl);
            Instant::now() + ttl + ttl / 10 + Duration::from_secs(5)
        });
        Self {
            core: Arc::clone(core),
            record,
            id: task.id.clone(),
            rules,
            observer: Observer::new(core, task.id.clone(), rules, task.poll, at_once),
            known: BTreeMap::new(),
            lost_results: 0,
            asking: JoinSet::new(),
            deadline,
            grace: None,
            answers: true,
            holds: false,
            held: None,
            released: BTreeSet::new(),
            seen: None,
            settled: Vec::new(),
        }
    }

    /// Sets whether input requests go to the input handler or are events.
    pub(crate) fn set_answering(&mut self, answers: bool) {
        self.answers = answers;
    }

    /// Sets whether new input requests are held until [`Drive::release`].
    pub(crate) fn set_holding(&mut self, holds: bool) {
        self.holds = holds;
        if !holds {
            self.release();
        }
    }

    /// Returns whether input requests are held.
    pub(crate) fn is_holding(&self) -> bool {
        self.held.is_some()
    }

    /// Releases the held input requests.
    pub(crate) fn release(&mut self) {
        let Some(held) = self.held.take() else { return };
        // Released requests are not held again, even if the task emits more segments.
        for (key, _) in held.questions.iter().flat_map(|questions| questions.iter()) {
            self.released.insert(key.to_owned());
        }
        self.seen = Some(held);
    }

    /// Drives the task to its end.
    pub(crate) async fn finish(&mut self) -> Result<CallToolResult> {
        self.set_holding(false);
        loop {
            if let TaskEvent::Done(result) = self.next().await? {
                return Ok(*result);
            }
        }
    }

    /// Returns the next event. Cancel safe.
    pub(crate) async fn next(&mut self) -> Result<TaskEvent> {
        loop {
            if !self.settled.is_empty() {
                self.give_settled().await?;
            }
            if let Some(snapshot) = self.seen.clone() {
                let event = self.seen(snapshot).await;
                self.seen = None;
                match event? {
                    Some(event) => return Ok(event),
                    None => continue,
                }
            }
            let (last, grace) = (self.deadline, self.grace);
            tokio::select! {
                heard = self.observer.next() => match heard? {
                    Heard::Task(snapshot) => self.seen = Some(*snapshot),
                    Heard::Unreachable(why) => return Ok(TaskEvent::Unreachable(why)),
                    Heard::Reachable => return Ok(TaskEvent::Reachable),
                },
                Some(settled) = self.asking.join_next(), if !self.asking.is_empty() => {
                    let settled = settled
                        .map_err(|_| ClientError::InvalidInputResponse("the input handler panicked".to_owned()))?;
                    self.settled.push(settled);
                }
                () = until(grace) => return Err(self.over(cancelled_task(&self.id)).await),
                () = until(last) => {
                    // Polls once more, because the task may have ended just before its expiry.
                    self.deadline = None;
                    let snapshot = super::watch::look(&self.core, &self.id).await?;
                    if !snapshot.status.is_terminal() {
                        let why = format!("the task `{}` has expired", self.id);
                        return Err(ServerError::plain(ServerErrorKind::TaskGone, outlive_wire::code::INVALID_PARAMS, why).into());
                    }
                    self.seen = Some(snapshot);
                }
            }
        }
    }

    async fn seen(&mut self, snapshot: TaskSnapshot) -> Result<Option<TaskEvent>> {
        let open = snapshot.questions.as_ref();
        for (key, known) in &mut self.known {
            known.is_gone |= !open.is_some_and(|open| open.iter().any(|(it, _)| it == key));
        }
        match (snapshot.status, self.rules.tasks) {
            (TaskStatus::Cancelled, _) => Err(self.over(cancelled_task(&self.id)).await),
            (TaskStatus::Completed | TaskStatus::Failed, TaskDialect::Offered) => {
                self.outcome(snapshot).await.map(Some)
            }
            // On 2025-11-25 the server sends input requests while the client waits for
            // `tasks/result`.
            (TaskStatus::InputRequired | TaskStatus::Completed | TaskStatus::Failed, _)
                if self.rules.tasks == TaskDialect::Requested =>
            {
                self.fetch().await
            }
            (TaskStatus::InputRequired, _) => self.ask(snapshot).await,
            _ => Ok(Some(TaskEvent::Status(Box::new(snapshot)))),
        }
    }

    /// Returns the outcome from a snapshot that contains it.
    async fn outcome(&mut self, snapshot: TaskSnapshot) -> Result<TaskEvent> {
        match (snapshot.status, snapshot.result, snapshot.error) {
            (TaskStatus::Completed, Some(result), _) => self.done(read(result.get())?).await,
            (TaskStatus::Failed, _, Some(error)) => {
                Err(self.over(ServerError::of(error, None).of_task()).await)
            }
            (TaskStatus::Failed, ..) => {
                let message = snapshot.message.unwrap_or_else(|| "the task failed".to_owned());
                let error = ErrorObject { code: outlive_wire::code::INTERNAL, message, data: None };
                Err(self.over(ServerError::of(error, None).of_task()).await)
            }
            _ => Err(Error::broke("the task is completed but has no result")),
        }
    }

    /// Waits for `tasks/result`. The input handler responds to requests in the meantime.
    async fn fetch(&mut self) -> Result<Option<TaskEvent>> {
        let mut wanted = about(&self.core, Method::TasksResult, &self.id, "");
        wanted.waiting = Waiting { timeout: None, ..wanted.waiting };
        let fetched = match send(&self.core, &wanted).await {
            Ok(answered) => answered.result().map(str::to_owned),
            Err(error) => Err(error),
        };
        match fetched {
            Ok(result) => self.done(read(&result)?).await.map(Some),
            // Only the connection is lost; the task still exists.
            Err(error) if matches!(error, Error::Transport(_)) && error.is_transient() => {
                tracing::debug!(task_id = self.id, %error, "cannot fetch the result of a task");
                Ok(None)
            }
            Err(Error::Client(ClientError::TimedOut(_))) => Ok(None),
            // The server or its store is overloaded. The retry returns a stored error unchanged.
            Err(error) if error.is_transient() && self.lost_results < RESENDS => {
                self.lost_results += 1;
                let wait =
                    error.server_error().and_then(ServerError::retry_after).unwrap_or_default();
                tokio::time::sleep(wait.min(self.core.limits().max_poll_interval)).await;
                Ok(None)
            }
            Err(Error::Server(refused)) => Err(self.settle_refusal(refused).await),
            Err(error) => Err(error),
        }
    }

    /// Handles an error of `tasks/result`: the outcome of the task, unless the task is unknown.
    async fn settle_refusal(&mut self, refused: ServerError) -> Error {
        if is_of_cancelled_task(refused.data.as_ref()) {
            return self.over(cancelled_task(&self.id)).await;
        }
        match gone(refused.into()) {
            // These errors concern the request and not the task, which has not ended.
            Error::Server(refused)
                if matches!(
                    refused.kind,
                    ServerErrorKind::TaskGone
                        | ServerErrorKind::MethodNotFound
                        | ServerErrorKind::Unauthorized
                        | ServerErrorKind::Forbidden
                        | ServerErrorKind::RateLimited { .. }
                ) =>
            {
                refused.into()
            }
            Error::Server(refused) => self.over(refused.of_task()).await,
            error => error,
        }
    }

    /// Passes the input requests of a snapshot to the input handler, or returns one as an event.
    async fn ask(&mut self, snapshot: TaskSnapshot) -> Result<Option<TaskEvent>> {
        let Some(questions) = snapshot.questions.clone() else {
            return Ok(Some(TaskEvent::Status(Box::new(snapshot))));
        };
        if questions.len() > self.core.limits().max_open_inputs {
            return Err(Error::broke(format!(
                "it sent {} input requests at once",
                questions.len()
            )));
        }
        let saved = self.record.saved().await.answers;
        let is_new = |key: &str| {
            !saved.contains_key(key)
                && !self.known.contains_key(key)
                && !self.released.contains(key)
        };
        if self.holds && questions.iter().any(|(key, _)| is_new(key)) {
            self.held = Some(snapshot.clone());
            return Ok(Some(TaskEvent::Status(Box::new(snapshot))));
        }
        let mut resend = Vec::new();
        for (key, request) in questions {
            // Requests with an acknowledged response are skipped; an unacknowledged response is
            // resent.
            let words = serde_json::to_string(&request).unwrap_or_default();
            if let Some(answer) = saved.get(&key) {
                if answer.acknowledged {
                    self.asked_again(&key, &words)?;
                } else {
                    resend.push((key, answer.answer.clone()));
                }
                continue;
            }
            if self.known.contains_key(&key) {
                continue;
            }
            let origin = InputOrigin::Task { id: self.id.clone() };
            let label = self.core.dispatch.label();
            let question = PendingInput::read(request, origin, label, Some(key.clone()))?;
            self.known.insert(key.clone(), Known::new(words));
            if !self.answers {
                return Ok(Some(TaskEvent::Input(Box::new(question))));
            }
            let core = Arc::clone(&self.core);
            let is_for_user = matches!(question.request, InputKind::Form(_) | InputKind::Url(_));
            self.asking.spawn(async move {
                (key, is_for_user, settle(core.dispatch.answerer(), question).await)
            });
        }
        if !resend.is_empty() {
            self.give(resend).await?;
        }
        Ok(Some(TaskEvent::Status(Box::new(snapshot))))
    }

    /// Handles an input request that is listed again after its response. A late snapshot is fine. A
    /// different request under the same key violates the protocol, because it would never get a
    /// response.
    fn asked_again(&mut self, key: &str, words: &str) -> Result<()> {
        let known =
            self.known.entry(key.to_owned()).or_insert_with(|| Known::new(words.to_owned()));
        let since = *known.since.get_or_insert_with(Instant::now);
        if known.is_gone {
            known.returns += 1;
            known.is_gone = false;
            self.observer.look_now();
        }
        match known.words != words || known.returns > 1 || since.elapsed() > LATE {
            true => {
                Err(Error::broke(format!("it reuses the key `{key}` for another input request")))
            }
            false => Ok(()),
        }
    }

    /// Sends the input responses that are ready now or shortly after.
    async fn give_settled(&mut self) -> Result<()> {
        let together = Instant::now() + TOGETHER;
        while !self.asking.is_empty() {
            match tokio::time::timeout_at(together, self.asking.join_next()).await {
                Ok(Some(Ok(settled))) => self.settled.push(settled),
                _ => break,
            }
        }
        let (mut answers, mut unanswered) = (Vec::new(), None);
        for (key, is_for_user, settled) in &self.settled {
            match settled {
                Settled::Send(json) => answers.push((key.clone(), json.clone())),
                // An undeclared elicitation gets the `cancel` response, because the user cannot see
                // it.
                Settled::Undeclared(kind) if *is_for_user => {
                    tracing::warn!(
                        task_id = self.id,
                        kind,
                        "a task requested input that this client does not declare"
                    );
                    answers.push((key.clone(), cancelled()));
                }
                Settled::Undeclared(kind) => {
                    let why =
                        format!("the task requested {kind}, which this client does not declare");
                    unanswered = Some(ClientError::Unanswered(why));
                }
                Settled::Refused(why) => unanswered = Some(ClientError::Unanswered(why.clone())),
                Settled::Bad(why) => {
                    let why = ClientError::InvalidInputResponse(why.clone());
                    self.settled.clear();
                    return Err(why.into());
                }
            }
        }
        if let Some(why) = unanswered {
            self.cancel().await?;
            self.settled.clear();
            return Err(why.into());
        }
        // Saved responses may be sent twice, but are not lost.
        let given = self.give(answers).await;
        if !given.as_ref().is_err_and(Error::is_transient) {
            self.settled.clear();
        }
        given
    }

    /// Saves input responses, then sends them until the server acknowledges them.
    pub(crate) async fn give(&mut self, answers: Vec<(String, RawJson)>) -> Result<()> {
        give(&self.core, &self.record, &self.id, answers).await?;
        self.observer.look_now();
        Ok(())
    }

    async fn done(&mut self, result: CallToolResult) -> Result<TaskEvent> {
        self.record.change(|saved| saved.stage = CallStage::Done(Box::new(result.clone()))).await?;
        tracing::debug!(task_id = self.id, "a task has ended");
        Ok(TaskEvent::Done(Box::new(result)))
    }

    /// Saves the failure of the task and returns it.
    async fn over(&mut self, refused: ServerError) -> Error {
        let error = ErrorObject {
            code: refused.code,
            message: refused.message.clone(),
            data: refused.data.clone(),
        };
        let noted = self.record.change(|saved| saved.stage = CallStage::Failed(error)).await;
        noted.err().unwrap_or_else(|| refused.into())
    }

    /// Cancels the task.
    pub(crate) async fn cancel(&mut self) -> Result<()> {
        cancel(&self.core, &self.id).await?;
        // The task may still complete; the client waits only for a limited time.
        self.grace = Some(Instant::now() + self.core.limits().cancel_grace);
        self.observer.look_now();
        Ok(())
    }
}

fn cancelled_task(id: &str) -> ServerError {
    let message = format!("the task `{id}` was cancelled");
    let refused =
        ServerError::plain(ServerErrorKind::TaskCancelled, outlive_wire::code::INTERNAL, message);
    // A process that resumes the saved call recognizes the cancellation by this data.
    let data = serde_json::json!({"taskId": id, "status": TaskStatus::Cancelled.as_str()});
    ServerError { data: to_raw_value(&data).ok(), ..refused }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
