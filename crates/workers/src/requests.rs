//! The work of each request of a call, over the journal.

use std::{
    future::{pending, poll_fn},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::Poll,
    time::Duration,
};

use outlive::{
    server::{
        ContentBlock, Durable, Error, Result,
        durable::{Key, Secret},
    },
    wire::RawJson,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tokio::sync::oneshot;

use crate::{
    line::from_server::{Recorded, Responses},
    operations::{Reply, Work},
    process::Process,
    rejection::{INVALID, is_mismatch, kind_of},
};

/// A call in a process, as its requests see it.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) cx: Durable,
    pub(crate) process: Arc<Process>,
    pub(crate) responses: Responses,
    /// Whether timers end at once.
    pub(crate) skips_time: bool,
}

/// End of a step's body.
#[derive(Debug)]
pub(crate) enum StepEnd {
    Done { value: RawJson, is_secret: bool },
    Failed { error: String, is_permanent: bool },
}

/// A step that a tool worker executes.
#[derive(Debug)]
pub(crate) struct Body {
    pub(crate) once: bool,
    pub(crate) end: oneshot::Receiver<StepEnd>,
    /// Whether the body executes or has executed. Segments of the step wait for it.
    pub(crate) has_started: Arc<AtomicBool>,
}

/// Value of a step, which is not parsed.
enum StepValue {
    Plain(RawJson),
    Secret(Secret<RawJson>),
}

impl Serialize for StepValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Plain(value) => value.serialize(serializer),
            Self::Secret(value) => value.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for StepValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        RawJson::deserialize(deserializer).map(Self::Plain)
    }
}

impl Caller {
    /// Returns the reply to a request that the journal rejects.
    pub(crate) fn rejected(&self, key: &str, error: Error) -> Reply {
        if is_mismatch(&error) && self.cx.task_id().is_some() {
            return Reply::Mismatch { key: key.to_owned(), reason: error.to_string() };
        }
        let line = self.responses.rejected(key, None, kind_of(&error), &error.to_string());
        Reply::Rejected { line, key: key.to_owned(), error }
    }

    /// Returns the work of a step.
    pub(crate) fn step(self, text: String, key: Key, body: Body) -> Work {
        let Body { once, end, has_started } = body;
        let caller = self;
        Box::pin(async move {
            let started = Arc::clone(&has_started);
            let (process, go) = (Arc::clone(&caller.process), caller.responses.go(&text));
            let run = async move || {
                started.store(true, Ordering::Relaxed);
                if once {
                    process.outbox.send(&go);
                }
                match end.await {
                    Ok(end) => end.into_result(),
                    // The run is over, and its owner drops it.
                    Err(_) => pending().await,
                }
            };
            let outcome: Result<StepValue> = match once {
                true => caller.cx.step_once(key, run).await,
                false => caller.cx.step(key, run).await,
            };
            let is_new = has_started.swap(true, Ordering::Relaxed);
            caller.step_reply(&text, outcome, is_new)
        })
    }

    fn step_reply(&self, key: &str, outcome: Result<StepValue>, is_new: bool) -> Reply {
        let recorded = |recorded: &Recorded| self.responses.recorded(key, recorded);
        match outcome {
            Ok(_) if is_new => {
                self.process.set_useful();
                Reply::Recorded(recorded(&Recorded::New))
            }
            Ok(value) => Reply::Line(recorded(&Recorded::Value(value.into_raw()))),
            Err(error) if error.durable_error().is_some() => self.rejected(key, error),
            Err(error) if !is_new => Reply::Line(recorded(&Recorded::Failed(error.to_string()))),
            Err(error) if error.is_permanent() => Reply::Recorded(recorded(&Recorded::New)),
            Err(_) => Reply::Nothing,
        }
    }

    /// Returns the work of a timer.
    pub(crate) fn sleep(self, text: String, key: Key, ms: u64) -> Work {
        let span = if self.skips_time { Duration::ZERO } else { Duration::from_millis(ms) };
        Box::pin(async move {
            match self.cx.sleep(key, span).await {
                Ok(()) => Reply::Line(self.responses.woke(&text)),
                Err(error) => self.rejected(&text, error),
            }
        })
    }

    /// Returns the work of an external event.
    pub(crate) fn external_event(self, text: String, key: Key, timeout: Option<Duration>) -> Work {
        Box::pin(async move {
            match self.completed(&text, key, timeout).await {
                Ok(value) => Reply::Line(self.responses.completed(&text, &value)),
                Err(error) => self.rejected(&text, error),
            }
        })
    }

    async fn completed(&self, text: &str, key: Key, timeout: Option<Duration>) -> Result<RawJson> {
        let mut event = self.cx.external_event::<RawJson>(key);
        if let Some(timeout) = timeout {
            event = event.timeout(timeout);
        }
        let event = event.await?;
        self.process.outbox.send(&self.responses.completion_token(text, event.token()));
        event.await
    }

    /// Returns the work of a segment: a content block of `scope`, with its number in the run.
    /// `step` states whether the step with the key of the scope executes.
    pub(crate) fn emit(
        self,
        block: RawJson,
        (text, scope): (String, Option<Key>),
        step: Option<Arc<AtomicBool>>,
        number: u64,
    ) -> Work {
        Box::pin(async move {
            // The start of a step restarts the numbers of its segments, so they must follow it.
            poll_fn(|_| match step.as_ref().is_none_or(|step| step.load(Ordering::Relaxed)) {
                true => Poll::Ready(()),
                // Polled again when the step is.
                false => Poll::Pending,
            })
            .await;
            let rejected = |kind: &str, message: &str| {
                Reply::Segment(Some(self.responses.rejected(&text, Some(number), kind, message)))
            };
            let block: ContentBlock = match serde_json::from_str(block.get()) {
                Ok(block) => block,
                Err(error) => return rejected(INVALID, &format!("invalid content block: {error}")),
            };
            let emitted = match scope {
                Some(scope) => self.cx.scope(scope).emit(block).await,
                None => self.cx.emit(block).await,
            };
            match emitted {
                Ok(()) => Reply::Segment(None),
                Err(error) => rejected(kind_of(&error), &error.to_string()),
            }
        })
    }
}

impl StepEnd {
    fn into_result(self) -> Result<StepValue> {
        match self {
            Self::Done { value, is_secret: false } => Ok(StepValue::Plain(value)),
            Self::Done { value, is_secret: true } => Ok(StepValue::Secret(Secret::new(value))),
            Self::Failed { error, is_permanent } => {
                let error = Error::new(error);
                Err(if is_permanent { error.permanent() } else { error })
            }
        }
    }
}

impl StepValue {
    fn into_raw(self) -> RawJson {
        match self {
            Self::Plain(value) => value,
            Self::Secret(value) => value.into_inner(),
        }
    }
}
