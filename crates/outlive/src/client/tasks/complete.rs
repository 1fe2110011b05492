//! Brings a task to its end: watches it, answers what it asks, fetches what came of it.

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

/// Answers that are ready within this time go together.
const TOGETHER: Duration = Duration::from_millis(50);

/// How long news of an input request that has its response may be late.
const LATE: Duration = Duration::from_secs(10);

/// An input request that was seen.
#[derive(Debug)]
struct Known {
    /// The request, to know it again.
    words: String,
    /// Whether a later state of the task did not list it.
    is_gone: bool,
    /// How often it was listed again after that.
    returns: u32,
    /// Since when it is listed although it has its response.
    since: Option<Instant>,
}

impl Known {
    fn new(words: String) -> Self {
        Self { words, is_gone: false, returns: 0, since: None }
    }
}

/// Something about a task.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum TaskEvent {
    /// It has come so far.
    Status(Box<TaskSnapshot>),
    /// It asks something: answer it with [`TaskHandle::respond`](super::TaskHandle::respond).
    Input(Box<PendingInput>),
    /// It has emitted something: part of its result, in order, each part once. Comes where the
    /// client said [`partial_results`](crate::client::ClientBuilder::partial_results) and the server
    /// has the extension; what had not come when the task ended is in the result alone.
    Segment(Box<Segment>),
    /// The server does not answer, for this reason. The client keeps trying for
    /// [`max_total_timeout`](crate::client::ClientLimits::max_total_timeout) and no longer than the task exists.
    Unreachable(String),
    /// The server answers again.
    Reachable,
    /// It is over, with a result. Its content begins with everything that came in parts.
    Done(Box<CallToolResult>),
}

/// A task that is being brought to its end.
pub(crate) struct Drive {
    core: Arc<Core>,
    record: Record,
    id: String,
    rules: &'static VersionRules,
    observer: Observer,
    /// Input requests that the client is responding to, or has responded to, by their keys.
    known: BTreeMap<String, Known>,
    /// How often the result could not be fetched, although it is there.
    lost_results: u32,
    asking: JoinSet<(String, bool, Settled)>,
    deadline: Option<Instant>,
    /// Until when a task that was cancelled is watched.
    grace: Option<Instant>,
    /// Whether questions go to the answerer; otherwise they are events.
    answers: bool,
    /// Whether new questions are held until what the task emitted before them has been read.
    holds: bool,
    /// The state with the questions that are held.
    held: Option<TaskSnapshot>,
    /// Questions that were held.
    released: BTreeSet<String>,
    /// What was seen and is not dealt with yet: whoever waits for that may be dropped.
    seen: Option<TaskSnapshot>,
    /// What was answered and is not given yet, for the same reason.
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
        // Judged by the time that passes here: two clocks need not agree.
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

    /// Puts questions to the answerer, or leaves them to whoever reads the events.
    pub(crate) fn set_answering(&mut self, answers: bool) {
        self.answers = answers;
    }

    /// Holds new questions until [`Drive::release`], or no longer.
    pub(crate) fn set_holding(&mut self, holds: bool) {
        self.holds = holds;
        if !holds {
            self.release();
        }
    }

    /// Whether questions are held.
    pub(crate) fn is_holding(&self) -> bool {
        self.held.is_some()
    }

    /// Lets the questions go that are held.
    pub(crate) fn release(&mut self) {
        let Some(held) = self.held.take() else { return };
        // To be asked now, whatever is emitted after them.
        for (key, _) in held.questions.iter().flat_map(|questions| questions.iter()) {
            self.released.insert(key.to_owned());
        }
        self.seen = Some(held);
    }

    /// To the end.
    pub(crate) async fn finish(&mut self) -> Result<CallToolResult> {
        self.set_holding(false);
        loop {
            if let TaskEvent::Done(result) = self.next().await? {
                return Ok(*result);
            }
        }
    }

    /// The next thing that happens. Can be dropped while it waits.
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
                        .map_err(|_| ClientError::InvalidInputResponse("the answerer panicked".to_owned()))?;
                    self.settled.push(settled);
                }
                () = until(grace) => return Err(self.over(cancelled_task(&self.id)).await),
                () = until(last) => {
                    // One last look: it may have ended in its last moment.
                    self.deadline = None;
                    let snapshot = super::watch::look(&self.core, &self.id).await?;
                    if !snapshot.status.is_terminal() {
                        let why = format!("the task `{}` has outlived its time", self.id);
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
            // Its questions come as requests while somebody waits for the result.
            (TaskStatus::InputRequired | TaskStatus::Completed | TaskStatus::Failed, _)
                if self.rules.tasks == TaskDialect::Requested =>
            {
                self.fetch().await
            }
            (TaskStatus::InputRequired, _) => self.ask(snapshot).await,
            _ => Ok(Some(TaskEvent::Status(Box::new(snapshot)))),
        }
    }

    /// What came of a task that brings it with it.
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
            _ => Err(Error::broke("its task is completed and has no result")),
        }
    }

    /// Waits for the result where it has to be fetched. What the task asks meanwhile is answered.
    async fn fetch(&mut self) -> Result<Option<TaskEvent>> {
        let mut wanted = about(&self.core, Method::TasksResult, &self.id, "");
        wanted.waiting = Waiting { timeout: None, ..wanted.waiting };
        let fetched = match send(&self.core, &wanted).await {
            Ok(answered) => answered.result().map(str::to_owned),
            Err(error) => Err(error),
        };
        match fetched {
            Ok(result) => self.done(read(&result)?).await.map(Some),
            // The connection is gone, not the task.
            Err(error) if matches!(error, Error::Transport(_)) && error.is_transient() => {
                tracing::debug!(task_id = self.id, %error, "the result of a task did not come");
                Ok(None)
            }
            Err(Error::Client(ClientError::TimedOut(_))) => Ok(None),
            // The server is busy or without its store; a stored error that says so is met again.
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

    /// A refusal of a result is what came of the call, unless it says that there is no such task.
    async fn settle_refusal(&mut self, refused: ServerError) -> Error {
        if is_of_cancelled_task(refused.data.as_ref()) {
            return self.over(cancelled_task(&self.id)).await;
        }
        match gone(refused.into()) {
            // These say something of the request and nothing of the task: it is not over for them.
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

    /// Puts its questions to whoever answers.
    async fn ask(&mut self, snapshot: TaskSnapshot) -> Result<Option<TaskEvent>> {
        let Some(questions) = snapshot.questions.clone() else {
            return Ok(Some(TaskEvent::Status(Box::new(snapshot))));
        };
        if questions.len() > self.core.limits().max_open_inputs {
            return Err(Error::broke(format!("it asks {} questions at once", questions.len())));
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
            // What was answered is not asked again; what may not have arrived is sent again.
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

    /// An input request that has its response is listed again. That may be news that is late; a key
    /// that is used for another request is a breach of the protocol, and nobody would ever respond.
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
            true => Err(Error::broke(format!("it uses the key `{key}` of an input request twice"))),
            false => Ok(()),
        }
    }

    /// Answers are ready: they go out with those that are ready right after them.
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
                // The server should not have asked; a user who cannot be asked has closed it.
                Settled::Undeclared(kind) if *is_for_user => {
                    tracing::warn!(
                        task_id = self.id,
                        kind,
                        "a task asked for what was not declared"
                    );
                    answers.push((key.clone(), cancelled()));
                }
                Settled::Undeclared(kind) => {
                    let why = format!("the task asked for {kind}, which nobody here can give");
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
        // Once they are noted they may be given twice, but not lost.
        let given = self.give(answers).await;
        if !given.as_ref().is_err_and(Error::is_transient) {
            self.settled.clear();
        }
        given
    }

    /// Gives answers: noted first, then sent until they are taken.
    pub(crate) async fn give(&mut self, answers: Vec<(String, RawJson)>) -> Result<()> {
        give(&self.core, &self.record, &self.id, answers).await?;
        self.observer.look_now();
        Ok(())
    }

    async fn done(&mut self, result: CallToolResult) -> Result<TaskEvent> {
        self.record.change(|saved| saved.stage = CallStage::Done(Box::new(result.clone()))).await?;
        tracing::debug!(task_id = self.id, "a task is over");
        Ok(TaskEvent::Done(Box::new(result)))
    }

    /// It is over, and came to nothing.
    async fn over(&mut self, refused: ServerError) -> Error {
        let error = ErrorObject {
            code: refused.code,
            message: refused.message.clone(),
            data: refused.data.clone(),
        };
        let noted = self.record.change(|saved| saved.stage = CallStage::Failed(error)).await;
        noted.err().unwrap_or_else(|| refused.into())
    }

    /// Asks the task to stop.
    pub(crate) async fn cancel(&mut self) -> Result<()> {
        cancel(&self.core, &self.id).await?;
        // It may still come to something; but not for ever.
        self.grace = Some(Instant::now() + self.core.limits().cancel_grace);
        self.observer.look_now();
        Ok(())
    }
}

fn cancelled_task(id: &str) -> ServerError {
    let message = format!("the task `{id}` was cancelled");
    let refused =
        ServerError::plain(ServerErrorKind::TaskCancelled, outlive_wire::code::INTERNAL, message);
    // A process that reads the saved call later has only this to tell that the task was cancelled.
    let data = serde_json::json!({"taskId": id, "status": TaskStatus::Cancelled.as_str()});
    ServerError { data: to_raw_value(&data).ok(), ..refused }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
