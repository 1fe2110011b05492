//! [`ToolStream`]: the partial results of a call, in order.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use outlive_wire::CallToolResult;

use super::{brought::Brought, legacy, modern};
use crate::client::{
    error::{ClientError, Error, Result, ServerErrorKind},
    request_builder::{RequestBuilder, sealed},
    segment::{Segment, segment},
    send::Boxed,
    tool_call::begin,
    tools::{ToolCall, offers_streaming},
    tracker::Tracker,
};

/// Request to call a tool and stream its partial results.
#[derive(Clone, Debug)]
pub struct StreamTool(pub(crate) ToolCall);

impl sealed::Run for StreamTool {
    type Output = ToolStream;

    fn run(self, call: sealed::Parts) -> Boxed<'static, ToolStream> {
        Box::pin(async move {
            let here = call.core.established().await?;
            let limit = call.core.limits().max_segment_bytes;
            let source = match offers_streaming(&call.core, &here) {
                true => Source::Legacy(Box::new(
                    legacy::Segments::open(&call.core, &here, &self.0).await?,
                )),
                false => {
                    let core = std::sync::Arc::clone(&call.core);
                    let handle = begin(&core, self.0.wanting_a_task(), call.waiting).await?;
                    Source::Modern(Box::new(modern::Segments::new(&core, handle)))
                }
            };
            let state = State { source, tracker: Tracker::new(limit) };
            Ok(ToolStream {
                state: Some(Box::new(state)),
                bringing: None,
                given: 0,
                result: None,
                is_terminal: false,
            })
        })
    }
}

/// Partial results of a call, in order and without duplicates.
///
/// Also a [`Stream`](futures_core::Stream). Dropping it does not cancel the task.
pub struct ToolStream {
    /// `None` while `bringing` owns it.
    state: Option<Box<State>>,
    /// Stored here, so that dropping the future of `next` loses nothing.
    bringing: Option<Bringing>,
    given: u64,
    result: Option<Box<CallToolResult>>,
    is_terminal: bool,
}

type Bringing = Pin<Box<dyn Future<Output = (Box<State>, Result<Brought>)> + Send>>;

#[derive(Debug)]
struct State {
    source: Source,
    tracker: Tracker,
}

impl std::fmt::Debug for ToolStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ToolStream")
            .field("given", &self.given)
            .field("is_terminal", &self.is_terminal)
            .finish_non_exhaustive()
    }
}

#[derive(Debug)]
enum Source {
    Legacy(Box<legacy::Segments>),
    Modern(Box<modern::Segments>),
}

impl ToolStream {
    /// Returns the next segment, or `None` at the end and after an error. Cancel safe.
    pub async fn next(&mut self) -> Option<Result<Segment>> {
        loop {
            if let Some((number, block)) = self.state.as_mut().and_then(|it| it.tracker.give()) {
                self.given = number;
                return Some(segment(number, block));
            }
            if self.is_terminal {
                return None;
            }
            let (mut state, brought) = self.bringing().await;
            let taken = brought.and_then(|brought| self.take(&mut state.tracker, brought));
            self.state = Some(state);
            if let Err(error) = taken {
                self.is_terminal = true;
                return Some(Err(self.incomplete(error)));
            }
        }
    }

    /// Returns the next item of the source.
    async fn bringing(&mut self) -> (Box<State>, Result<Brought>) {
        if let Some(mut state) = self.state.take() {
            self.bringing = Some(Box::pin(async move {
                let brought = match &mut state.source {
                    Source::Legacy(source) => source.bring(&mut state.tracker).await,
                    Source::Modern(source) => source.bring(&mut state.tracker).await,
                };
                (state, brought)
            }));
        }
        let brought = std::future::poll_fn(|cx| match &mut self.bringing {
            Some(bringing) => bringing.as_mut().poll(cx),
            None => Poll::Pending,
        });
        let brought = brought.await;
        self.bringing = None;
        brought
    }

    /// Returns the complete result. Skips unread segments.
    ///
    /// # Errors
    ///
    /// [`ClientError::Incomplete`] if the stream ended early. Never returns a truncated result.
    pub async fn finish(&mut self) -> Result<CallToolResult> {
        while let Some(segment) = self.next().await {
            segment?;
        }
        match self.result.take() {
            Some(result) => Ok(*result),
            None => {
                Err(ClientError::Incomplete("the result was already returned".to_owned()).into())
            }
        }
    }

    /// Returns the number of segments that were returned.
    pub fn segment_count(&self) -> u64 {
        self.given
    }

    fn take(&mut self, tracker: &mut Tracker, brought: Brought) -> Result<()> {
        match brought {
            Brought::More => {}
            Brought::Whole(result) => {
                // The result starts with the segments that arrived before; further blocks are new.
                for (at, block) in result.content.iter().enumerate() {
                    let block = serde_json::to_value(block)
                        .map_err(|error| Error::broke(error.to_string()))?;
                    tracker.take(at as u64 + 1, block)?;
                }
                (self.result, self.is_terminal) = (Some(result), true);
            }
            Brought::End(mut result) => {
                let blocks = tracker.blocks().iter();
                result.content = blocks
                    .map(|block| serde_json::from_value(block.clone()))
                    .collect::<serde_json::Result<_>>()
                    .map_err(|error| Error::broke(error.to_string()))?;
                (self.result, self.is_terminal) = (Some(result), true);
            }
        }
        Ok(())
    }

    /// Converts the error of a lost or cancelled task into [`ClientError::Incomplete`].
    fn incomplete(&self, error: Error) -> Error {
        match error.kind() {
            Some(ServerErrorKind::TaskGone | ServerErrorKind::TaskCancelled) => {
                let why = format!("after {} segments, {error}", self.given);
                ClientError::Incomplete(why).into()
            }
            _ => error,
        }
    }
}

impl futures_core::Stream for ToolStream {
    type Item = Result<Segment>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        // `next` keeps its state in `self`, so dropping its future loses nothing.
        let next = std::pin::pin!(self.next());
        next.poll(cx)
    }
}

impl RequestBuilder<StreamTool> {
    /// Sets an idempotency key, so that the server executes the call once.
    pub fn idempotency_key(mut self, key: impl Into<String>) -> Self {
        self.kind.0.set_key(key.into());
        self
    }

    /// Sets the TTL of the task, for protocol versions in which the client decides.
    pub fn task_ttl(mut self, ttl: Duration) -> Self {
        self.kind.0.set_ttl(ttl);
        self
    }
}
