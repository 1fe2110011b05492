//! Partial results of a task, pushed by a subscription or pulled with `tasks/get`.

use std::{pin::Pin, sync::Arc};

use outlive_protocol::{Incoming, IncomingKind};
use outlive_wire::Method;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::watch::{about, subscribe};
use crate::client::{
    core::Core,
    error::{Result, ServerErrorKind},
    exchange::Exchange,
    segment::{PARTIALS, Segment, segment},
    send::{Boxed, send},
    tracker::Tracker,
};

/// Member of `_meta` in `tasks/get`: the last sequence number that the client has.
const AFTER: &str = "dev.outlive/afterSeq";
/// Member of `_meta` in the result: the segments after that number.
const BESIDE: &str = "dev.outlive/partials";
/// Member of a subscription filter for partial results.
const FILTER: &str = "dev.outlive/taskPartials";

/// Attempts to fetch the segments before an input request.
const CATCH_UP_TRIES: u32 = 5;

/// Receives the next segments. Waits forever without a feed. Cancel safe.
pub(crate) async fn fed(feed: &mut Option<Feed>, tracker: &mut Tracker) -> Result<()> {
    match feed {
        Some(feed) => feed.bring(tracker).await,
        None => std::future::pending().await,
    }
}

/// Source of the segments of a task.
pub(crate) struct Feed {
    core: Arc<Core>,
    task: String,
    opening: Option<Pin<Box<dyn Future<Output = Option<Exchange>> + Send>>>,
    pushing: Option<Exchange>,
    pulling: Option<Boxed<'static, Option<Partials>>>,
    next_pull: Instant,
}

impl std::fmt::Debug for Feed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Feed").field("task", &self.task).finish_non_exhaustive()
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Partials {
    segments: Vec<Numbered>,
    #[serde(default)]
    last_seq: u64,
    complete: bool,
}

#[derive(Deserialize)]
struct Numbered {
    seq: u64,
    block: Value,
}

impl Feed {
    /// Creates the feed of a task, if client and server have the extension.
    pub(crate) fn of(core: &Arc<Core>, task: Option<&str>) -> Option<Self> {
        let task = task.filter(|_| has_partials(core))?.to_owned();
        let (asking, id) = (Arc::clone(core), task.clone());
        Some(Self {
            core: Arc::clone(core),
            task,
            opening: Some(Box::pin(async move { listen(&asking, &id).await })),
            pushing: None,
            pulling: None,
            next_pull: Instant::now(),
        })
    }

    /// Receives the next segments. Cancel safe.
    async fn bring(&mut self, tracker: &mut Tracker) -> Result<()> {
        let (is_pulling, after) = (self.pulling.is_some(), tracker.contiguous());
        // Segments that the subscription dropped can be pulled.
        let is_pushed = self.pushing.is_some() && !tracker.has_gap();
        let is_whole = tracker.is_complete() && !tracker.has_gap();
        let may_pull = self.opening.is_none() && !is_pushed && !is_whole;
        tokio::select! {
            biased;
            opened = ready(&mut self.opening), if self.opening.is_some() => {
                (self.opening, self.pushing) = (None, opened);
            }
            pulled = ready(&mut self.pulling), if is_pulling => {
                self.pulling = None;
                self.next_pull = Instant::now() + self.core.limits().default_poll_interval / 4;
                // A failed pull is ignored, because the task is observed separately.
                if let Ok(Some(partials)) = pulled {
                    take(tracker, partials)?;
                }
            }
            pushed = next_message(&mut self.pushing), if self.pushing.is_some() => match pushed {
                Some(message) => {
                    if let Some(partials) = pushed_in(&message) {
                        take(tracker, partials)?;
                    }
                }
                None => self.pushing = None,
            },
            () = tokio::time::sleep_until(self.next_pull), if may_pull && !is_pulling => {
                let (core, id) = (Arc::clone(&self.core), self.task.clone());
                self.pulling = Some(Box::pin(async move { pull(&core, &id, after).await }));
            }
            // All segments have arrived.
            () = std::future::pending() => {}
        }
        Ok(())
    }
}

/// Returns whether client and server have the extension.
fn has_partials(core: &Core) -> bool {
    core.current().is_some_and(|now| {
        let theirs = now.server.capabilities.extensions.as_ref();
        let ours = core.declared.capabilities.extensions.as_ref();
        theirs.is_some_and(|it| it.contains_key(PARTIALS))
            && ours.is_some_and(|it| it.contains_key(PARTIALS))
    })
}

/// Fetches the segments after a sequence number. Returns none if a side lacks the extension.
pub(crate) async fn emitted(core: &Arc<Core>, task: &str, after: u64) -> Result<Vec<Segment>> {
    core.established().await?;
    let (mut segments, mut after): (Vec<Segment>, u64) = (Vec::new(), after);
    for _ in 0..core.limits().max_pages {
        if !has_partials(core) {
            break;
        }
        let Some(partials) = pull(core, task, after).await? else { break };
        let before = after;
        for Numbered { seq, block } in partials.segments {
            if seq > after {
                segments.push(segment(seq, block)?);
                after = seq;
            }
        }
        if after == before || after >= partials.last_seq {
            break;
        }
    }
    Ok(segments)
}

/// One fetch of the current segments of a task.
pub(crate) struct CatchUp(Boxed<'static, Option<Partials>>);

impl std::fmt::Debug for CatchUp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CatchUp").finish_non_exhaustive()
    }
}

impl CatchUp {
    /// Starts to fetch the segments after a sequence number.
    pub(crate) fn new(core: &Arc<Core>, task: &str, after: u64) -> Self {
        let (core, task) = (Arc::clone(core), task.to_owned());
        Self(Box::pin(async move {
            let mut tries = 0;
            loop {
                let pulled = pull(&core, &task, after).await;
                let Err(error) = &pulled else { return pulled };
                if !error.is_transient() || tries == CATCH_UP_TRIES {
                    return pulled;
                }
                tries += 1;
                let asked_for = match error.kind() {
                    Some(ServerErrorKind::RateLimited { retry_after }) => retry_after,
                    _ => None,
                };
                tokio::time::sleep(asked_for.unwrap_or(core.limits().min_poll_interval)).await;
            }
        }))
    }

    /// Returns whether the tracker has all segments up to now, or no more can be fetched.
    pub(crate) async fn finish(&mut self, tracker: &mut Tracker) -> bool {
        match self.0.as_mut().await {
            Ok(Some(partials)) => {
                let last = partials.last_seq;
                take(tracker, partials).is_err() || tracker.contiguous() >= last
            }
            Ok(None) => true,
            Err(error) => {
                tracing::debug!(%error, "cannot fetch the partial results before an input request");
                true
            }
        }
    }
}

fn take(tracker: &mut Tracker, partials: Partials) -> Result<()> {
    for Numbered { seq, block } in partials.segments {
        tracker.take(seq, block)?;
    }
    if partials.complete {
        tracker.complete();
    }
    Ok(())
}

async fn ready<T>(future: &mut Option<Pin<Box<dyn Future<Output = T> + Send>>>) -> T {
    std::future::poll_fn(|cx| match future {
        Some(future) => future.as_mut().poll(cx),
        None => std::task::Poll::Pending,
    })
    .await
}

async fn next_message(pushing: &mut Option<Exchange>) -> Option<Incoming> {
    match pushing {
        Some(exchange) => {
            let message = exchange.next().await.ok().flatten()?;
            match message.kind() {
                IncomingKind::Notification { .. } => Some(message),
                // The server ended the subscription.
                _ => {
                    exchange.settle();
                    None
                }
            }
        }
        None => std::future::pending().await,
    }
}

fn pushed_in(message: &Incoming) -> Option<Partials> {
    match message.kind() {
        IncomingKind::Notification { method: Some(Method::TaskPartials), .. } => {
            message.params().ok()
        }
        _ => None,
    }
}

async fn pull(core: &Arc<Core>, id: &str, after: u64) -> Result<Option<Partials>> {
    let mut wanted = about(core, Method::TasksGet, id, "");
    wanted.waiting.add_meta(AFTER, &after.to_string());
    let answered = send(core, &wanted).await?;
    let result: Value = answered.read()?;
    let beside = result.get("_meta").and_then(|meta| meta.get(BESIDE)).cloned();
    Ok(beside.and_then(|beside| serde_json::from_value(beside).ok()))
}

async fn listen(core: &Arc<Core>, id: &str) -> Option<Exchange> {
    let params = json!({"notifications": {FILTER: [{"taskId": id, "afterSeq": 0}]}}).to_string();
    let has_agreed = |message: &Incoming| {
        let params: Value = message.params().unwrap_or_default();
        let agreed = params.get("notifications").and_then(|it| it.get(FILTER));
        agreed.and_then(Value::as_array).is_some_and(|it| !it.is_empty())
    };
    subscribe(core, &params, has_agreed).await
}
