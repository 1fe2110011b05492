//! The future behind every input request: sends the request and checks the response.

use std::{
    task::{Context, Poll, ready},
    time::Duration,
};

use outlive_protocol::{InputMode, era};
use outlive_tasks::{InputFailure, InputPoll, IntoKey, engine::IdleRun, store::Audience};
use outlive_wire::InputRequest;
use serde_json::value::RawValue;

use crate::server::{
    durable::context::Durable, durable_error::DurableError, env::environment::Env, error::Result,
    run::state::RunState, time::millis,
};

/// Reason why people cannot respond to an input request.
const NO_PEOPLE: &str = "the server has no store with decisions, so people cannot \
    respond; call `.tasks(…)` with `TaskConfig::open` or `TaskConfig::people`";

/// State of an input request that a handler awaits.
#[derive(Debug)]
pub(crate) struct InputFuture<'a> {
    pub(crate) cx: &'a Durable,
    pub(crate) key: String,
    pub(crate) within: Option<Duration>,
    pub(crate) audience: Audience,
    stage: Stage,
    /// The run, while it waits in memory because it cannot be parked.
    idle: Option<IdleRun>,
}

#[derive(Debug, PartialEq, Eq)]
enum Stage {
    New,
    Open,
    Settled,
}

/// Verdict on an input response.
pub(crate) enum Verdict<T> {
    Yes(T),
    /// The response is well-formed but invalid: the request is issued again with this reason.
    Again(String),
    /// The response is malformed.
    Never(String),
}

impl<'a> InputFuture<'a> {
    pub(crate) fn new(cx: &'a Durable, key: impl IntoKey) -> Self {
        let audience = Audience::Client;
        Self { cx, key: cx.full(key), within: None, audience, stage: Stage::New, idle: None }
    }

    /// Polls for a response that `judge` accepts. `request` builds the input request each time it
    /// is issued; its argument is the reason why the last response was invalid.
    pub(crate) fn poll<T>(
        &mut self,
        task: &mut Context<'_>,
        request: impl Fn(Option<&str>) -> Result<InputRequest>,
        judge: impl Fn(&RawValue) -> Verdict<T>,
    ) -> Poll<Result<T>> {
        loop {
            // Dropping the future withdraws an open request.
            if let Poll::Ready(stopped) = self.cx.poll_stopped(&self.key, task) {
                return Poll::Ready(Err(stopped.into()));
            }
            let asking = match self.stage {
                Stage::New => {
                    ready!(self.poll_unparkable(task))?;
                    self.count_idle()?;
                    if self.audience.is_people() {
                        ready!(poll_people(self.cx.env(), self.cx.run(), &self.key, task))?;
                    }
                    self.ask(request(None)?)
                }
                Stage::Open => match self.cx.journal().inputs().poll(&self.key, task) {
                    Poll::Ready(asking) => asking.map_err(|wrong| DurableError::from(wrong).into()),
                    Poll::Pending => {
                        if self.idle.is_none() {
                            // A call that was promoted meanwhile. Beyond the limit it stays as it is.
                            let _ = self.count_idle();
                        }
                        return Poll::Pending;
                    }
                },
                Stage::Settled => panic!("`InputFuture` polled after completion"),
            };
            if self.cx.journal().crashed() {
                return Poll::Pending;
            }
            let answer = match asking {
                Ok(InputPoll::Open) => continue,
                Ok(InputPoll::Answered(answer)) => answer,
                Ok(InputPoll::Unanswered(why)) => {
                    self.settle();
                    return Poll::Ready(Err(unanswered(&self.key, why).into()));
                }
                Err(error) => {
                    self.settle();
                    return Poll::Ready(Err(error));
                }
            };
            if let Some(settled) = self.judged(judge(&answer), &request) {
                self.settle();
                return Poll::Ready(settled);
            }
        }
    }

    /// Promotes a call that waits for input over several rounds, if its run must not end with a
    /// round.
    fn poll_unparkable(&self, task: &mut Context<'_>) -> Poll<Result<()>> {
        let is_bound = self.cx.call().rules().input_mode == InputMode::RoundTrip
            && self.cx.journal().is_unparkable();
        if !is_bound {
            return Poll::Ready(Ok(()));
        }
        self.cx.run().poll_task(task).map(|is_task| match is_task {
            true => Ok(()),
            false => Err(DurableError::TaskRequired { key: self.key.clone() }.into()),
        })
    }

    /// Counts a run that cannot be parked in its own limits, because it may wait for long.
    fn count_idle(&mut self) -> Result<()> {
        let Some(task) = self.cx.run().task_id().filter(|_| self.cx.journal().is_unparkable())
        else {
            return Ok(());
        };
        let Some(tasks) = &self.cx.env().tasks else { return Ok(()) };
        let idle = tasks.engine().idle_run(&task);
        self.idle =
            idle.map_err(|full| DurableError::NoCapacity { capacity: full.limit.into() })?;
        Ok(())
    }

    fn settle(&mut self) {
        self.stage = Stage::Settled;
        self.idle = None;
    }

    fn ask(&mut self, request: InputRequest) -> Result<InputPoll> {
        let cx = self.cx;
        let missing = era::missing_for(cx.call(), &request);
        let missing = missing
            .filter(|_| !self.audience.is_people() && !cx.run().takes_input_elsewhere(&request));
        let within = self.within.map(|span| (cx.now(), millis(span)));
        let asking = cx
            .journal()
            .inputs()
            .ask(cx.run_id(), &self.key, request, self.audience.clone(), within)
            .map_err(DurableError::from)?;
        self.stage = Stage::Open;
        match (&asking, missing) {
            // A recorded response needs no capability.
            (InputPoll::Open, Some(required)) => {
                cx.journal().inputs().withdraw(&self.key);
                Err(DurableError::MissingCapability { key: self.key.clone(), required }.into())
            }
            _ => Ok(asking),
        }
    }

    /// Returns `None` if the request is open again.
    fn judged<T>(
        &mut self,
        verdict: Verdict<T>,
        request: impl Fn(Option<&str>) -> Result<InputRequest>,
    ) -> Option<Result<T>> {
        let cx = self.cx;
        let key = || self.key.clone();
        match verdict {
            Verdict::Yes(value) => Some(Ok(value)),
            Verdict::Again(why) => {
                let request = match request(Some(&why)) {
                    Ok(request) => request,
                    Err(error) => return Some(Err(error)),
                };
                let inputs = cx.journal().inputs();
                let times = inputs.reissue(&self.key, request, self.audience.clone());
                if times > cx.env().profile.limits.max_rounds {
                    cx.journal().inputs().withdraw(&self.key);
                    return Some(Err(DurableError::InvalidResponse { key: key() }.into()));
                }
                self.stage = Stage::Open;
                None
            }
            // A malformed response to a request that is not open rejects the client's request.
            Verdict::Never(why)
                if cx.journal().inputs().refuse_unrequested(&self.key, || {
                    format!("`params.inputResponses`: `{}`: {why}", self.key)
                }) =>
            {
                self.stage = Stage::Open;
                None
            }
            // The codec has checked the responses to open requests. This response belongs to
            // another kind of request, made by an earlier version of the handler.
            Verdict::Never(why) if cx.call().rules().input_mode == InputMode::RoundTrip => {
                self.judged(Verdict::Again(why), request)
            }
            Verdict::Never(why) => {
                let code = outlive_wire::code::INVALID_PARAMS;
                Some(Err(DurableError::ClientError { key: key(), code, message: why }.into()))
            }
        }
    }
}

/// Losing a `select!` withdraws the request. Being dropped with the whole run does not.
impl Drop for InputFuture<'_> {
    fn drop(&mut self) {
        if self.stage == Stage::Open {
            self.cx.journal().inputs().withdraw(&self.key);
        }
    }
}

/// Waits until people can see an input request: its call must be a task in a store with decisions.
/// Promotes the call for that.
pub(crate) fn poll_people(
    env: &Env,
    run: &RunState,
    key: &str,
    task: &mut Context<'_>,
) -> Poll<std::result::Result<(), DurableError>> {
    let key = || key.to_owned();
    if env.tasks.as_ref().is_none_or(|tasks| tasks.people.is_none()) {
        let reason = NO_PEOPLE.to_owned();
        return Poll::Ready(Err(DurableError::InvalidInputRequest { key: key(), reason }));
    }
    run.poll_task(task).map(|is_task| match is_task {
        true => Ok(()),
        false => Err(DurableError::TaskRequired { key: key() }),
    })
}

pub(crate) fn unanswered(key: &str, why: InputFailure) -> DurableError {
    let key = key.to_owned();
    match why {
        InputFailure::Refused { code, message } => DurableError::ClientError { key, code, message },
        _ => DurableError::TimedOut { key },
    }
}

/// Converts a decoding result. The outer error means that the response is malformed, the inner
/// error that it is invalid.
pub(crate) fn verdict<T>(
    read: std::result::Result<std::result::Result<T, String>, String>,
) -> Verdict<T> {
    match read {
        Ok(Ok(value)) => Verdict::Yes(value),
        Ok(Err(why)) => Verdict::Again(why),
        Err(why) => Verdict::Never(why),
    }
}
