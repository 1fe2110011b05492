//! The cleanup of a cancelled or expired task: ends what runs for it at the upstream.

use std::{sync::Arc, time::Duration};

use outlive::{
    client::{Error as UpstreamError, relay::StreamPoint},
    server::{
        Cx, Error, Result,
        durable::{Cleanup, Secret},
    },
};

use super::{
    failure,
    journal::{PipePoint, Started, UpstreamTask, started_key, stream_key, task_key},
    outage::Outage,
    rounds::MAX_ROUNDS,
    route::Reached,
    survival::supervisor,
    task_requests::{TaskRequests, is_outage, retry_after},
    tool::ToolRoute,
};
use crate::{
    excerpt::excerpt,
    upstream::{ConnectionKey, Lease},
};

/// Work for a call that continues at its upstream.
enum Left {
    Task(UpstreamTask),
    Stream(StreamPoint),
    /// A request to a process that survives the gateway.
    Request(u64),
}

/// Cancels at the upstream the call of a task that was cancelled or has expired.
pub(crate) async fn clean_up(task: Cleanup, cx: Cx, tool: Arc<ToolRoute>) -> Result<()> {
    let Some((left, pipe)) = left(&task)? else { return Ok(()) };
    let reached = tool.route.reach()?;
    let mut outage = Outage::default();
    // The engine limits the time of a cleanup.
    loop {
        let delay = match acquire(&cx, &reached, pipe.as_ref()).await {
            Err(error) => outage.failed(None).ok_or(error)?,
            // The process has ended, or its machine cancels the call.
            Ok(None) => return Ok(()),
            Ok(Some(lease)) => match cancel(&lease, &left).await {
                Err(error) if is_outage(&error) => {
                    let reason = excerpt(&error.to_string());
                    outage.failed(retry_after(&error)).ok_or_else(|| Error::new(reason))?
                }
                // The upstream may have ended the call before.
                _ => return Ok(()),
            },
        };
        tokio::time::sleep(delay.max(Duration::from_millis(100))).await;
    }
}

/// Returns what the last round of the call left, and the process that has it.
fn left(task: &Cleanup) -> Result<Option<(Left, Option<PipePoint>)>> {
    for round in (0..MAX_ROUNDS).rev() {
        let started = task.get::<Started>(started_key(round))?;
        let pipe = started.and_then(|started| started.pipe);
        if let Some(task) = task.get::<UpstreamTask>(task_key(round))? {
            return Ok(Some((Left::Task(task), pipe)));
        }
        if let Some(point) = task.get::<Secret<StreamPoint>>(stream_key(round))? {
            return Ok(Some((Left::Stream(point.into_inner()), None)));
        }
        if let Some(pipe) = pipe {
            return Ok(Some((Left::Request(pipe.request), Some(pipe))));
        }
    }
    Ok(None)
}

/// Leases the connection that a call used. With `pipe`, it is the connection to the process that has
/// the call's request.
async fn acquire(cx: &Cx, reached: &Reached, pipe: Option<&PipePoint>) -> Result<Option<Lease>> {
    let failed = |error| failure::of_acquire(reached, error);
    if let Some(pipe) = pipe {
        let is_here = supervisor(reached).is_some_and(|it| it.machine() == pipe.machine);
        return match is_here {
            true => reached.member.runtime.resume(&pipe.process).await.map_err(failed),
            false => Ok(None),
        };
    }
    let settings = reached.member.settings();
    let (key, alive) = ConnectionKey::of_call(&settings, reached.shared.rules, cx.call());
    let lease = reached.member.runtime.acquire(&key, &alive).await;
    lease.map(Some).map_err(failed)
}

async fn cancel(lease: &Lease, left: &Left) -> std::result::Result<(), UpstreamError> {
    let connection = lease.connection();
    match left {
        Left::Task(task) => TaskRequests::new(connection, &task.id).cancel().await,
        Left::Stream(point) => {
            connection.client.cancel_at(point, "the client cancelled the call").await
        }
        Left::Request(request) => {
            if let Some(supervised) = connection.supervised() {
                supervised.cancel(*request);
            }
            Ok(())
        }
    }
}
