//! Segments in responses that share one request ID, a negotiated dialect of 2025-11-25.
//!
//! After a disconnect the client resumes with `tasks/result` and the last contiguous sequence
//! number. The response contains the segments after that number.

use std::{sync::Arc, time::Duration};

use outlive_protocol::{
    Incoming, IncomingKind,
    era::client::{Outgoing, TaskSnapshot, read_task},
};
use outlive_wire::{CallToolResult, Meta, Method, RawJson};
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::{task::JoinSet, time::Instant};

use super::brought::Brought;
use crate::client::{
    attempt::{Waiting, read},
    core::Core,
    error::{ClientError, Error, Result, ServerError},
    exchange::Exchange,
    incoming,
    link::Connection,
    send::{jitter, send},
    tasks::{about, gone},
    tools::ToolCall,
    tracker::Tracker,
};

/// Factor by which the poll interval grows while segments arrive.
const STREAMING: u32 = 5;

pub(crate) struct Segments {
    core: Arc<Core>,
    here: Arc<Connection>,
    exchange: Option<Exchange>,
    asked: JoinSet<()>,
    task: Option<TaskSnapshot>,
    next_look: Instant,
    last: Box<CallToolResult>,
}

impl std::fmt::Debug for Segments {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Segments").field("task", &self.task).finish_non_exhaustive()
    }
}

/// One response: segments, a task, or the complete result.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Part {
    #[serde(rename = "partial-content")]
    partial: Option<Vec<Map<String, Value>>>,
    content: Option<RawJson>,
    task: Option<RawJson>,
    is_complete: Option<bool>,
    is_error: Option<bool>,
    structured_content: Option<RawJson>,
    #[serde(rename = "_meta")]
    meta: Option<Meta>,
}

impl Segments {
    pub(crate) async fn open(
        core: &Arc<Core>,
        here: &Arc<Connection>,
        tool: &ToolCall,
    ) -> Result<Self> {
        let (params, meta) = (tool.streaming_params()?, tool.meta());
        let request = Outgoing {
            id: Some(core.next_id()),
            method: Method::ToolsCall.as_str(),
            params: &params,
            meta: &meta,
            name: Some(&tool.name),
            holds_tasks: true,
            ..Outgoing::default()
        };
        let exchange = Exchange::open(here, &request).await?;
        Ok(Self {
            core: Arc::clone(core),
            here: Arc::clone(here),
            exchange: Some(exchange),
            asked: JoinSet::new(),
            task: None,
            next_look: Instant::now() + core.limits().request_timeout,
            last: Box::default(),
        })
    }

    /// Passes the next segments to the tracker, or returns the end.
    pub(crate) async fn bring(&mut self, tracker: &mut Tracker) -> Result<Brought> {
        if tracker.is_whole() {
            if let Some(exchange) = &mut self.exchange {
                exchange.settle();
            }
            return match (&self.task, self.last.is_error) {
                (Some(task), Some(true)) => {
                    let id = task.id.clone();
                    self.failed(&id).await
                }
                _ => Ok(Brought::End(std::mem::take(&mut self.last))),
            };
        }
        // The server has all segments, so the missing ones can be fetched immediately.
        if tracker.is_complete() && tracker.has_gap() {
            return self.resume(tracker).await;
        }
        let Some(exchange) = &mut self.exchange else {
            tokio::time::sleep_until(self.next_look).await;
            return self.resume(tracker).await;
        };
        tokio::select! {
            biased;
            message = exchange.next() => match message {
                Ok(Some(message)) => self.heard(message, tracker),
                Ok(None) | Err(_) => {
                    // The stream is lost, but a task can still be resumed.
                    if let Some(exchange) = &mut self.exchange {
                        exchange.settle();
                    }
                    self.exchange = None;
                    self.next_look = Instant::now();
                    match self.task {
                        Some(_) => Ok(Brought::More),
                        None => Err(outlive_transport::client::TransportError::after_sending(
                            outlive_transport::client::TransportErrorKind::ConnectionLost,
                        )
                        .into()),
                    }
                }
            },
            Some(_) = self.asked.join_next(), if !self.asked.is_empty() => Ok(Brought::More),
            () = tokio::time::sleep_until(self.next_look), if self.task.is_some() => {
                self.next_look = Instant::now() + self.interval() * STREAMING;
                match tracker.contiguous() {
                    0 => self.look(tracker).await,
                    _ => self.resume(tracker).await,
                }
            }
        }
    }

    fn heard(&mut self, message: Incoming, tracker: &mut Tracker) -> Result<Brought> {
        let is_ours = self.exchange.as_ref().is_some_and(|exchange| exchange.is_answer(&message));
        match message.kind() {
            IncomingKind::Result { .. } if is_ours => {
                let part: Part = read(message.result().unwrap_or_default())?;
                self.take(part, tracker)
            }
            IncomingKind::Error { error, .. } if is_ours => {
                if let Some(exchange) = &mut self.exchange {
                    exchange.settle();
                }
                Err(ServerError::of(error.clone(), None).into())
            }
            IncomingKind::Request { .. } => {
                if let Some(work) = incoming::asked(&self.here, message) {
                    self.asked.spawn(work);
                }
                Ok(Brought::More)
            }
            IncomingKind::Notification { .. } => {
                self.here.inputs.heard(&message);
                self.core.dispatch.heard(&message);
                Ok(Brought::More)
            }
            _ => Ok(Brought::More),
        }
    }

    fn take(&mut self, part: Part, tracker: &mut Tracker) -> Result<Brought> {
        if let Some(task) = &part.task {
            self.task = Some(read_task(task.get()).map_err(Error::broke)?);
            self.next_look = Instant::now() + self.interval() * STREAMING;
        }
        if let Some(content) = part.content {
            if let Some(exchange) = &mut self.exchange {
                exchange.settle();
            }
            let whole = CallToolResult {
                content: read(content.get())?,
                structured_content: part.structured_content,
                is_error: part.is_error,
                meta: part.meta,
            };
            return Ok(Brought::Whole(Box::new(whole)));
        }
        for mut block in part.partial.into_iter().flatten() {
            let number = block.remove("seqNr").and_then(|number| number.as_u64());
            let number =
                number.ok_or_else(|| Error::broke("a partial result has no sequence number"))?;
            tracker.take(number, Value::Object(block))?;
        }
        if part.is_complete == Some(true) {
            tracker.complete();
            let meta = part.meta.map(|mut meta| {
                meta.remove(Meta::RELATED_TASK);
                meta
            });
            *self.last = CallToolResult {
                content: Vec::new(),
                structured_content: part.structured_content,
                is_error: part.is_error,
                meta: meta.filter(|meta| !meta.is_empty()),
            };
        }
        Ok(Brought::More)
    }

    /// Checks whether a task without segments has ended.
    async fn look(&mut self, tracker: &mut Tracker) -> Result<Brought> {
        let Some(task) = &self.task else { return Ok(Brought::More) };
        let snapshot = crate::client::tasks::look(&self.core, &task.id).await?;
        match snapshot.status.is_terminal() {
            true => self.resume(tracker).await,
            false => Ok(Brought::More),
        }
    }

    /// Fetches the missing segments. Before the first segment the client has no sequence number, so
    /// it waits for the complete result.
    async fn resume(&mut self, tracker: &mut Tracker) -> Result<Brought> {
        let Some(task) = &self.task else {
            return Err(Error::broke("the partial results do not belong to a task"));
        };
        let more = match tracker.contiguous() {
            0 => String::new(),
            last => format!(r#""lastSeqNr":{last}"#),
        };
        let mut wanted = about(&self.core, Method::TasksResult, &task.id, &more);
        if more.is_empty() {
            wanted.waiting = Waiting { timeout: None, ..wanted.waiting };
        }
        let part: Part = match send(&self.core, &wanted).await {
            Ok(answered) => read(answered.result().map_err(gone)?)?,
            Err(error) if error.is_transient() => {
                self.next_look = Instant::now() + self.interval();
                return Ok(Brought::More);
            }
            Err(error) => return Err(gone(error)),
        };
        if self.exchange.is_none() {
            self.next_look = Instant::now() + self.interval();
        }
        self.take(part, tracker)
    }

    /// Handles a last response with `isError`. Either the tool returned an error, or the task was
    /// cancelled or expired and segments are missing. `tasks/result` shows which.
    async fn failed(&mut self, id: &str) -> Result<Brought> {
        match send(&self.core, &about(&self.core, Method::TasksResult, id, "")).await {
            Ok(answered) => match answered.result() {
                Ok(result) => Ok(Brought::Whole(read(result)?)),
                Err(error) => Err(ClientError::Incomplete(error.to_string()).into()),
            },
            Err(error) if error.is_transient() => {
                tokio::time::sleep(self.interval()).await;
                Ok(Brought::More)
            }
            Err(error) => Err(error),
        }
    }

    fn interval(&self) -> Duration {
        let limits = self.core.limits();
        let named = self.task.as_ref().and_then(|task| task.poll);
        let span = named.map_or(limits.default_poll_interval, Duration::from_millis);
        let span = span.clamp(limits.min_poll_interval, limits.max_poll_interval);
        span + jitter(span / 10)
    }
}
