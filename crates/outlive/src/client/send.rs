//! Requests until their result: reconnects, retries and rounds.

use std::{future::Future, pin::Pin, sync::Arc, time::Duration};

use outlive_protocol::{
    Incoming, IncomingKind, VersionRules,
    era::client::{ResultContext, ResultKind, TaskSnapshot, client_codec},
};
use outlive_transport::client::TransportErrorKind;
use outlive_wire::{ErrorObject, InputRequiredResult, Method, RawJson, code};
use serde_json::Value;
use tokio::task::JoinSet;

use super::{
    attempt::{Answered, Wanted, once, supported},
    call_store::{Record, SavedRound},
    core::Core,
    error::{ClientError, Error, Result},
    exchange::Failed,
    input::{InputOrigin, PendingInput, settle},
    link::Connection,
};

/// Sends a request and waits for its response. Reconnects if the connection was lost before the
/// request was sent.
pub(crate) async fn send(core: &Arc<Core>, wanted: &Wanted) -> Result<Answered> {
    let mut renewed = 0;
    let mut versions = 0;
    loop {
        let here = core.established().await?;
        match once(&here, wanted).await {
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

/// Converts the JSON-RPC error in an HTTP error body into a response.
fn as_answer(here: &Arc<Connection>, error: &ErrorObject, status: u16) -> Result<Answered> {
    let json = serde_json::json!({"jsonrpc": "2.0", "error": error});
    let message = Incoming::read(json.to_string().into()).map_err(Error::broke)?;
    Ok(Answered { here: Arc::clone(here), message, status: Some(status), rounds: 0 })
}

/// Switches to a protocol version that the server lists. Returns `None` if no version is common.
fn agree(core: &Arc<Core>, answered: &Answered) -> Option<()> {
    let IncomingKind::Error { error, .. } = answered.message.kind() else { return None };
    let named = supported(error);
    let pinned = core.settings.pinned.map(|rules| rules.version);
    let rules = VersionRules::newest_of(named.iter().map(String::as_str))?;
    if pinned.is_some_and(|pinned| pinned != rules.version) || rules.sessions {
        return None;
    }
    // If the version is unchanged, the request is sent once more, because servers may reject it
    // temporarily.
    if rules.version != answered.here.rules.version {
        core.adopt(answered.here.by_rules_of(rules)?);
    }
    Some(())
}

/// Outcome of a call.
#[derive(Debug)]
pub(crate) enum CallOutcome {
    /// A result.
    Complete(Answered),
    /// A task.
    Task(Arc<Connection>, Box<TaskSnapshot>),
}

/// Sends a request, responds to the input requests of each round, and repeats until the outcome.
pub(crate) async fn converse(core: &Arc<Core>, wanted: Wanted) -> Result<CallOutcome> {
    converse_noting(core, wanted, None, None).await
}

/// Same as [`converse`], but starts at a saved round and saves every round before it is sent.
pub(crate) async fn converse_noting(
    core: &Arc<Core>,
    mut wanted: Wanted,
    begin: Option<SavedRound>,
    record: Option<&Record>,
) -> Result<CallOutcome> {
    let method = Method::parse(&wanted.method);
    // The parameters of the first round, without input responses and request state.
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
            ResultKind::Complete => return Ok(CallOutcome::Complete(answered)),
            ResultKind::Task(task) => return Ok(CallOutcome::Task(answered.here, task)),
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
                return Err(Error::broke(format!(
                    "it sent {} input requests in one round",
                    questions.len()
                )));
            }
            let name = wanted.name.clone().unwrap_or_else(|| wanted.method.to_string());
            let origin = InputOrigin::Round { name, round };
            Some(Box::pin(gather(core, questions.into_iter(), &origin, &wanted)).await?)
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

/// Returns the delay before a call is retried with its request state.
fn pause(times: u32, meta: Option<&outlive_wire::Meta>) -> Duration {
    let named = meta.and_then(|meta| meta.get("dev.outlive/retryAfterMs")).and_then(Value::as_u64);
    let backing_off = Duration::from_millis(100) * (1 << times.min(7));
    let wait = named.map_or(backing_off, Duration::from_millis).min(Duration::from_secs(10));
    wait + jitter(wait / 10)
}

/// Returns a random duration up to `most`, so that clients do not retry simultaneously.
pub(crate) fn jitter(most: Duration) -> Duration {
    let random = getrandom::u32().unwrap_or_default();
    most.mul_f64(f64::from(random) / f64::from(u32::MAX))
}

/// Passes all input requests to the input handler concurrently. Returns the responses by key.
pub(crate) async fn gather(
    core: &Arc<Core>,
    questions: impl Iterator<Item = (String, outlive_wire::InputRequest)>,
    origin: &InputOrigin,
    wanted: &Wanted,
) -> Result<Vec<(String, RawJson)>> {
    let mut asked = JoinSet::new();
    let mut order = Vec::new();
    for (key, request) in questions {
        let question =
            PendingInput::read(request, origin.clone(), core.dispatch.label(), Some(key.clone()))?;
        order.push(key.clone());
        let (core, answerer) = (Arc::clone(core), wanted.waiting.answerer.clone());
        asked.spawn(async move {
            let answerer = answerer.as_deref().or(core.dispatch.answerer());
            (key, settle(answerer, question).await)
        });
    }
    let mut answers = Vec::new();
    while let Some(settled) = asked.join_next().await {
        let (key, settled) = settled.map_err(|_| {
            ClientError::InvalidInputResponse("the input handler panicked".to_owned())
        })?;
        answers.push((key, Result::from(settled)?));
    }
    answers.sort_by_key(|(key, _)| order.iter().position(|known| known == key));
    Ok(answers)
}

/// Returns the parameters of the next round, with input responses and request state.
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

/// Boxed future of a request.
pub(crate) type Boxed<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;
