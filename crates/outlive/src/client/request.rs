//! A request from its sending to its answer: time, progress, questions on the way, rounds.

use std::{
    borrow::Cow,
    fmt,
    future::Future,
    pin::{Pin, pin},
    sync::Arc,
    time::Duration,
};

use outlive_protocol::{
    Incoming, IncomingKind, VersionRules,
    era::client::{Outgoing, ResultContext, ResultKind, TaskSnapshot, client_codec},
};
use outlive_transport::client::TransportErrorKind;
use outlive_wire::{
    ErrorObject, InputRequiredResult, Method, ProgressNotificationParams, RawJson, code,
};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::{task::JoinSet, time::Instant};

use super::{
    call_store::{Record, SavedRound},
    core::{Core, Established, unexpected},
    error::{ClientError, Error, Refused, Result},
    exchange::{Exchange, Failed},
    input::{InputOrigin, PendingInput, settle},
};

/// How far a request has come.
pub type Progress = ProgressNotificationParams;

/// Hears how far a request has come.
pub(crate) type OnProgress = Arc<dyn Fn(Progress) + Send + Sync>;

/// A request as the caller wants it, before a revision has shaped it.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(crate) method: Cow<'static, str>,
    /// The text of an object, without `_meta`.
    pub(crate) params: String,
    /// What it is about, where its method has a header for that.
    pub(crate) name: Option<String>,
    /// Arguments that are repeated in headers.
    pub(crate) repeated: Vec<(String, String)>,
    pub(crate) holds_tasks: bool,
    pub(crate) waiting: Waiting,
}

/// How long to wait, and what to hear meanwhile.
#[derive(Clone)]
pub(crate) struct Waiting {
    pub(crate) timeout: Option<Duration>,
    pub(crate) total: Duration,
    pub(crate) on_progress: Option<OnProgress>,
    pub(crate) progress_resets: bool,
    /// Members of `_meta`, without braces.
    pub(crate) meta: String,
}

impl fmt::Debug for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiting").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

impl Waiting {
    pub(crate) fn new(core: &Core) -> Self {
        let limits = core.limits();
        Self {
            timeout: Some(limits.request_timeout),
            total: limits.max_total_timeout,
            on_progress: None,
            progress_resets: true,
            meta: String::new(),
        }
    }

    pub(crate) fn within(core: &Core, timeout: Duration) -> Self {
        Self { timeout: Some(timeout), ..Self::new(core) }
    }

    /// Adds a member to `_meta`.
    pub(crate) fn add_meta(&mut self, key: &str, value: &str) {
        if !self.meta.is_empty() {
            self.meta.push(',');
        }
        self.meta.push_str(&Value::from(key).to_string());
        self.meta.push(':');
        self.meta.push_str(value);
    }
}

impl Wanted {
    /// A request of a method that the specification names.
    pub(crate) fn new(core: &Core, method: Method, params: impl Into<String>) -> Self {
        Self {
            method: method.as_str().into(),
            params: params.into(),
            name: None,
            repeated: Vec::new(),
            holds_tasks: false,
            waiting: Waiting::new(core),
        }
    }

    #[must_use]
    pub(crate) fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }
}

/// An answer, and the connection that it came on.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) here: Arc<Established>,
    pub(crate) message: Incoming,
    pub(crate) status: Option<u16>,
    /// How many rounds of questions came before it.
    pub(crate) rounds: u32,
}

impl Answered {
    /// The result, or the refusal.
    pub(crate) fn result(&self) -> Result<&str> {
        match self.message.kind() {
            IncomingKind::Result { result, .. } => Ok(self.message.text(result)),
            IncomingKind::Error { error, .. } => Err(refused(error, self.status)),
            _ => Err(unexpected(&self.message)),
        }
    }

    /// The result as a type.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Result<T> {
        read(self.result()?)
    }

    fn code(&self) -> Option<i32> {
        match self.message.kind() {
            IncomingKind::Error { error, .. } => Some(error.code),
            _ => None,
        }
    }
}

fn refused(error: &ErrorObject, status: Option<u16>) -> Error {
    // A status of success says nothing about the refusal in its body.
    Refused::of(error.clone(), status.filter(|status| *status >= 400)).into()
}

/// Reads a result.
pub(crate) fn read<T: DeserializeOwned>(text: &str) -> Result<T> {
    serde_json::from_str(text)
        .map_err(|error| Error::broke(format!("its result cannot be read: {error}")))
}

/// Sends a request and waits for its answer, on this connection and no other.
pub(crate) async fn once(
    core: &Arc<Core>,
    here: &Arc<Established>,
    wanted: &Wanted,
) -> Result<Answered, Failed> {
    let waiting = &wanted.waiting;
    let id = core.next_id();
    let mut meta = waiting.meta.clone();
    if waiting.on_progress.is_some() {
        let comma = if meta.is_empty() { "" } else { "," };
        meta.push_str(&format!(r#"{comma}"progressToken":{id}"#));
    }
    let request = Outgoing {
        id: Some(id),
        method: &wanted.method,
        params: &wanted.params,
        meta: &meta,
        name: wanted.name.as_deref(),
        repeated: &wanted.repeated,
        holds_tasks: wanted.holds_tasks,
    };
    let begun = Instant::now();
    let span = waiting.timeout.unwrap_or(waiting.total).min(waiting.total);
    let mut alarm = pin!(tokio::time::sleep_until(begun + span));
    let timed_out = || Failed::from(Error::from(ClientError::TimedOut(begun.elapsed())));
    let mut opening = pin!(Exchange::open(core, here, &request));
    let mut exchange = loop {
        tokio::select! {
            biased;
            opened = &mut opening => break opened?,
            () = &mut alarm => match core.more_time(span) {
                Some(until) => alarm.as_mut().reset(until),
                None => return Err(timed_out()),
            },
        }
    };
    // Made for the first question: most requests are answered without one.
    let mut asked: Option<JoinSet<()>> = None;
    let mut strays = 0;
    loop {
        let is_asked = asked.as_ref().is_some_and(|asked| !asked.is_empty());
        let message = tokio::select! {
            biased;
            message = exchange.next() => message?,
            Some(()) = one_of(&mut asked), if is_asked => {
                // Somebody took time to answer; that was not the server's.
                alarm.as_mut().reset(Instant::now() + span);
                continue;
            }
            () = &mut alarm, if !is_asked => return Err(timed_out()),
        };
        let Some(message) = message else {
            let cut =
                outlive_transport::client::TransportError::after_sending(TransportErrorKind::Cut);
            return Err(cut.into());
        };
        match message.kind() {
            _ if exchange.is_answer(&message) => {
                exchange.settle();
                let (here, status) = (Arc::clone(here), exchange.status());
                return Ok(Answered { here, message, status, rounds: 0 });
            }
            IncomingKind::Result { .. } | IncomingKind::Error { .. } => {
                tracing::warn!(id, "an answer to another request was dropped");
                strays += 1;
                if strays > core.limits().max_queued_notifications {
                    return Err(Error::broke("it answers everything but the request").into());
                }
            }
            IncomingKind::Request { .. } => {
                let (core, here) = (Arc::clone(core), Arc::clone(here));
                asked
                    .get_or_insert_default()
                    .spawn(async move { core.dispatch.answer(&core, &here, message).await });
            }
            IncomingKind::Notification { method: Some(Method::Progress), .. }
                if message.belongs_to() == Some(id) =>
            {
                if let (Some(hear), Ok(progress)) = (&waiting.on_progress, message.params()) {
                    hear(progress);
                }
                if waiting.progress_resets {
                    let most = begun + waiting.total;
                    alarm.as_mut().reset((Instant::now() + span).min(most));
                }
            }
            IncomingKind::Notification { .. } => core.dispatch.heard(&message),
        }
    }
}

/// Waits for one of the answers that are being given.
async fn one_of(asked: &mut Option<JoinSet<()>>) -> Option<()> {
    asked.as_mut()?.join_next().await.map(|_| ())
}

/// Sends a request and waits for its answer, on a new connection if the one there is has gone
/// without the request.
pub(crate) async fn send(core: &Arc<Core>, wanted: &Wanted) -> Result<Answered> {
    let mut renewed = 0;
    let mut versions = 0;
    loop {
        let here = core.established().await?;
        match once(core, &here, wanted).await {
            Ok(answered) => {
                if answered.code() == Some(code::UNSUPPORTED_VERSION) && versions < 2 {
                    versions += 1;
                    if agree(core, &answered).is_some() {
                        continue;
                    }
                }
                return Ok(answered);
            }
            Err(Failed::SessionGone) if renewed < 2 => {
                renewed += 1;
                core.renew(Some(&here)).await?;
            }
            Err(Failed::Status { status, error: Some(error), .. })
                if error.code == code::UNSUPPORTED_VERSION && versions < 2 =>
            {
                versions += 1;
                let answered = as_answer(&here, &error, status)?;
                if agree(core, &answered).is_none() {
                    return Ok(answered);
                }
            }
            Err(Failed::Status { status, error: Some(error), retry_after: None })
                if status != 401 && status != 403 =>
            {
                return as_answer(&here, &error, status);
            }
            Err(failed) => {
                let error = Error::from(failed);
                let is_unsent = match &error {
                    Error::Transport(error) => {
                        !error.may_have_been_sent() && *error.kind() == TransportErrorKind::Closed
                    }
                    _ => false,
                };
                if is_unsent && renewed < 2 {
                    renewed += 1;
                    core.renew(Some(&here)).await?;
                    continue;
                }
                return Err(error);
            }
        }
    }
}

/// A refusal that came in the body of an HTTP error, as the answer that it is.
fn as_answer(here: &Arc<Established>, error: &ErrorObject, status: u16) -> Result<Answered> {
    let json = serde_json::json!({"jsonrpc": "2.0", "error": error});
    let message = Incoming::read(json.to_string().into()).map_err(Error::broke)?;
    Ok(Answered { here: Arc::clone(here), message, status: Some(status), rounds: 0 })
}

/// Takes a revision that the server has named; `None` if there is none in common.
fn agree(core: &Arc<Core>, answered: &Answered) -> Option<()> {
    let IncomingKind::Error { error, .. } = answered.message.kind() else { return None };
    let named = supported(error);
    let pinned = core.settings.pinned.map(|rules| rules.version);
    let rules = VersionRules::newest_of(named.iter().map(String::as_str))?;
    if pinned.is_some_and(|pinned| pinned != rules.version) || rules.sessions {
        return None;
    }
    // Also if it is the same one: a server may refuse what it says it speaks, once.
    if rules.version != answered.here.rules.version {
        core.adopt(answered.here.by_rules_of(rules)?);
    }
    Some(())
}

/// The revisions that a refusal names.
pub(crate) fn supported(error: &ErrorObject) -> Vec<String> {
    #[derive(serde::Deserialize)]
    struct Data {
        supported: Vec<String>,
    }
    let data = error.data.as_ref().and_then(|data| serde_json::from_str::<Data>(data.get()).ok());
    data.map(|data| data.supported).unwrap_or_default()
}

/// What a call came to.
#[derive(Debug)]
pub(crate) enum Came {
    /// A result.
    Complete(Answered),
    /// A task.
    Task(Arc<Established>, Box<TaskSnapshot>),
}

/// Sends a request, answers what the server asks in place of a result, and sends it again, until
/// there is one.
pub(crate) async fn converse(core: &Arc<Core>, wanted: Wanted) -> Result<Came> {
    converse_noting(core, wanted, None, None).await
}

/// As [`converse`], from a round that was noted, and noting every round before it is sent.
pub(crate) async fn converse_noting(
    core: &Arc<Core>,
    mut wanted: Wanted,
    begin: Option<SavedRound>,
    record: Option<&Record>,
) -> Result<Came> {
    let method = Method::parse(&wanted.method);
    // The parameters without answers and state, once there are some.
    let mut first = None;
    let (mut round, mut idle) = (0, 0);
    if let Some(SavedRound { answers, state }) = begin {
        let params = again(&wanted.params, Some(&answers), state.as_deref());
        first = Some(std::mem::replace(&mut wanted.params, params));
    }
    loop {
        let mut answered = send(core, &wanted).await?;
        answered.rounds = round + idle;
        let asked = ResultContext { method, holds_tasks: wanted.holds_tasks };
        let reply = client_codec(answered.here.rules.era)
            .read(&asked, answered.result()?)
            .map_err(Error::broke)?;
        let required = match reply {
            ResultKind::Complete => return Ok(Came::Complete(answered)),
            ResultKind::Task(task) => return Ok(Came::Task(answered.here, task)),
            ResultKind::InputRequired(required) => *required,
        };
        let InputRequiredResult { input_requests, request_state, meta } = required;
        let questions = input_requests.unwrap_or_default();
        let limits = core.limits();
        let answers = if questions.is_empty() {
            idle += 1;
            if idle > limits.max_state_retries {
                return Err(ClientError::TooManyRounds(limits.max_state_retries).into());
            }
            tokio::time::sleep(pause(idle, meta.as_ref())).await;
            None
        } else {
            round += 1;
            if round > limits.max_rounds {
                return Err(ClientError::TooManyRounds(limits.max_rounds).into());
            }
            if questions.len() > limits.max_open_inputs {
                return Err(Error::broke(format!("it asks {} questions at once", questions.len())));
            }
            let name = wanted.name.clone().unwrap_or_else(|| wanted.method.to_string());
            let origin = InputOrigin::Round { name, round };
            Some(Box::pin(gather(core, questions.into_iter(), &origin)).await?)
        };
        let first = first.get_or_insert_with(|| wanted.params.clone());
        wanted.params = again(first, answers.as_ref(), request_state.as_deref());
        if let Some(record) = record {
            let answers = answers.unwrap_or_default();
            record
                .change(|saved| saved.note_round(SavedRound { answers, state: request_state }))
                .await?;
        }
    }
}

/// How long to wait before a call that was sent away comes back.
fn pause(times: u32, meta: Option<&outlive_wire::Meta>) -> Duration {
    let named = meta.and_then(|meta| meta.get("dev.outlive/retryAfterMs")).and_then(Value::as_u64);
    let backing_off = Duration::from_millis(100) * (1 << times.min(7));
    let wait = named.map_or(backing_off, Duration::from_millis).min(Duration::from_secs(10));
    wait + jitter(wait / 10)
}

/// A random part of a span, so that clients do not come all at once.
pub(crate) fn jitter(most: Duration) -> Duration {
    let random = getrandom::u32().unwrap_or_default();
    most.mul_f64(f64::from(random) / f64::from(u32::MAX))
}

/// Puts questions to the answerer, all at once; the answers by their keys.
pub(crate) async fn gather(
    core: &Arc<Core>,
    questions: impl Iterator<Item = (String, outlive_wire::InputRequest)>,
    origin: &InputOrigin,
) -> Result<Vec<(String, RawJson)>> {
    let mut asked = JoinSet::new();
    let mut order = Vec::new();
    for (key, request) in questions {
        let question =
            PendingInput::read(request, origin.clone(), core.dispatch.label(), Some(key.clone()))?;
        order.push(key.clone());
        let core = Arc::clone(core);
        asked.spawn(async move { (key, settle(core.dispatch.answerer(), question).await) });
    }
    let mut answers = Vec::new();
    while let Some(settled) = asked.join_next().await {
        let (key, settled) = settled
            .map_err(|_| ClientError::InvalidInputResponse("the answerer panicked".to_owned()))?;
        answers.push((key, Result::from(settled)?));
    }
    answers.sort_by_key(|(key, _)| order.iter().position(|known| known == key));
    Ok(answers)
}

/// The parameters of the next round: as they were, with answers and state.
fn again(first: &str, answers: Option<&Vec<(String, RawJson)>>, state: Option<&str>) -> String {
    let members = first.trim().strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    let mut params = format!("{{{}", members.unwrap_or_default().trim());
    let mut member = |name: &str, value: &str| {
        if params.len() > 1 {
            params.push(',');
        }
        params.push_str(&format!("\"{name}\":{value}"));
    };
    if let Some(answers) = answers {
        let entries: Vec<String> = answers
            .iter()
            .map(|(key, answer)| format!("{}:{}", Value::from(key.as_str()), answer.get()))
            .collect();
        member("inputResponses", &format!("{{{}}}", entries.join(",")));
    }
    if let Some(state) = state {
        member("requestState", &Value::from(state).to_string());
    }
    params.push('}');
    params
}

/// A future in a box: what the builders of calls are awaited as.
pub(crate) type Boxed<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;
