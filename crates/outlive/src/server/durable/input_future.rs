//! What all questions share: how they are put, and what is made of their answers.

use std::{
    task::{Context, Poll},
    time::Duration,
};

use outlive_protocol::{InputMode, era};
use outlive_tasks::{InputFailure, InputPoll, IntoKey};
use outlive_wire::InputRequest;
use serde_json::value::RawValue;

use crate::server::{
    durable::context::Durable, durable_error::DurableError, error::Result, time::millis,
};

/// What all questions share: the key, and how far they are.
#[derive(Debug)]
pub(crate) struct InputFuture<'a> {
    pub(crate) cx: &'a Durable,
    pub(crate) key: String,
    pub(crate) within: Option<Duration>,
    stage: Stage,
}

#[derive(Debug, PartialEq, Eq)]
enum Stage {
    New,
    Open,
    Settled,
}

/// What to make of an answer.
pub(crate) enum Verdict<T> {
    Yes(T),
    /// It is an answer, but not one to this question: asked again, saying why.
    Again(String),
    /// It is no answer at all.
    Never(String),
}

impl<'a> InputFuture<'a> {
    pub(crate) fn new(cx: &'a Durable, key: impl IntoKey) -> Self {
        Self { cx, key: cx.full(key), within: None, stage: Stage::New }
    }

    /// Polls for an answer that `judge` finds good. `request` is asked for each time the question
    /// is put: with why, when an answer did not fit.
    pub(crate) fn poll<T>(
        &mut self,
        task: &mut Context<'_>,
        request: impl Fn(Option<&str>) -> Result<InputRequest>,
        judge: impl Fn(&RawValue) -> Verdict<T>,
    ) -> Poll<Result<T>> {
        loop {
            // One that is open is withdrawn when it is dropped.
            if let Poll::Ready(stopped) = self.cx.poll_stopped(&self.key, task) {
                return Poll::Ready(Err(stopped.into()));
            }
            let asking = match self.stage {
                Stage::New => self.ask(request(None)?),
                Stage::Open => match self.cx.journal().inputs().poll(&self.key, task) {
                    Poll::Ready(asking) => asking.map_err(|wrong| DurableError::from(wrong).into()),
                    Poll::Pending => return Poll::Pending,
                },
                Stage::Settled => panic!("polled after it was answered"),
            };
            if self.cx.journal().crashed() {
                return Poll::Pending;
            }
            let answer = match asking {
                Ok(InputPoll::Open) => continue,
                Ok(InputPoll::Answered(answer)) => answer,
                Ok(InputPoll::Unanswered(why)) => {
                    self.stage = Stage::Settled;
                    return Poll::Ready(Err(unanswered(&self.key, why).into()));
                }
                Err(error) => {
                    self.stage = Stage::Settled;
                    return Poll::Ready(Err(error));
                }
            };
            if let Some(settled) = self.judged(judge(&answer), &request) {
                self.stage = Stage::Settled;
                return Poll::Ready(settled);
            }
        }
    }

    fn ask(&mut self, request: InputRequest) -> Result<InputPoll> {
        let cx = self.cx;
        let missing = era::missing_for(cx.call(), &request);
        let within = self.within.map(|span| (cx.now(), millis(span)));
        let asking = cx
            .journal()
            .inputs()
            .ask(cx.run_id(), &self.key, request, within)
            .map_err(DurableError::from)?;
        self.stage = Stage::Open;
        match (&asking, missing) {
            // What has been answered needs no capability any more.
            (InputPoll::Open, Some(required)) => {
                cx.journal().inputs().withdraw(&self.key);
                Err(DurableError::MissingCapability { key: self.key.clone(), required }.into())
            }
            _ => Ok(asking),
        }
    }

    /// `None` if the question is open again.
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
                let times = cx.journal().inputs().reissue(&self.key, request);
                if times > cx.env().profile.limits.max_rounds {
                    cx.journal().inputs().withdraw(&self.key);
                    return Some(Err(DurableError::InvalidResponse { key: key() }.into()));
                }
                self.stage = Stage::Open;
                None
            }
            // What came without being asked for refuses the request that brought it.
            Verdict::Never(why)
                if cx.journal().inputs().refuse_unrequested(&self.key, || {
                    format!("`params.inputResponses`: `{}`: {why}", self.key)
                }) =>
            {
                self.stage = Stage::Open;
                None
            }
            // What was asked for has been checked to be an answer: it is one to another question, of
            // an earlier version of the handler.
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

/// Losing a `select!` withdraws the question; being dropped with the run does not.
impl Drop for InputFuture<'_> {
    fn drop(&mut self) {
        if self.stage == Stage::Open {
            self.cx.journal().inputs().withdraw(&self.key);
        }
    }
}

pub(crate) fn unanswered(key: &str, why: InputFailure) -> DurableError {
    let key = key.to_owned();
    match why {
        InputFailure::Refused { code, message } => DurableError::ClientError { key, code, message },
        _ => DurableError::TimedOut { key },
    }
}

/// What to make of an answer that has been read: outside, whether it is one at all; inside, whether
/// it fits.
pub(crate) fn verdict<T>(
    read: std::result::Result<std::result::Result<T, String>, String>,
) -> Verdict<T> {
    match read {
        Ok(Ok(value)) => Verdict::Yes(value),
        Ok(Err(why)) => Verdict::Again(why),
        Err(why) => Verdict::Never(why),
    }
}
