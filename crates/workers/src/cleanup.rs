//! The cleanup of a tool: a function in a process, after a cancelled or expired task.

use std::sync::Arc;

use outlive::server::{
    Error, Result,
    durable::{Cleanup, CleanupReason},
    extract::RawParams,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::oneshot;

use crate::{
    line::{from_server::RunNumber, from_worker::RunEnd, start::Start},
    pool::{Place, PlaceError},
    result,
    route::ToolRoute,
};

/// Processes that a cleanup may lose.
const ATTEMPTS: usize = 3;

/// Arguments of a call without any.
const NO_ARGUMENTS: &str = "{}";

/// A cleanup in a process. Dropping it drops the cleanup there.
struct CleanupSeat {
    place: Place,
    /// Whether the process has the line that starts the cleanup.
    has_started: bool,
    is_over: bool,
}

impl Drop for CleanupSeat {
    fn drop(&mut self) {
        if !self.is_over && !self.has_started {
            self.place.process.remove(self.place.number);
        } else if !self.is_over {
            let run = RunNumber::Cleanup(self.place.number);
            self.place.process.drop_run(run, "cancelled", None);
        }
    }
}

/// Runs the cleanup of a task.
pub(crate) async fn clean_up(
    task: Cleanup,
    params: RawParams,
    route: Arc<ToolRoute>,
) -> Result<()> {
    #[derive(Deserialize)]
    struct Params<'a> {
        #[serde(borrow)]
        arguments: Option<&'a RawValue>,
    }
    let params: Params<'_> = serde_json::from_str(params.0.get())?;
    let none = RawValue::from_string(NO_ARGUMENTS.to_owned())?;
    let arguments = params.arguments.unwrap_or(&none);
    let (tool_worker, tool) = (&*route.pool.settings.name, &*route.declared.name);
    for _ in 0..ATTEMPTS {
        let (mut seat, end) = start(&task, &route, arguments).await?;
        let Ok(end) = end.await else {
            tracing::warn!(tool_worker, tool, "a cleanup lost its process");
            continue;
        };
        seat.is_over = true;
        return match end {
            RunEnd::CleanedUp => Ok(()),
            RunEnd::Error(failed) => Err(result::of_error(tool_worker, tool, failed)),
            _ => Err(Error::new("the tool worker did not run the cleanup")),
        };
    }
    Err(Error::new(format!(
        "the cleanup lost {ATTEMPTS} processes of the tool worker `{tool_worker}`"
    )))
}

async fn start(
    task: &Cleanup,
    route: &ToolRoute,
    arguments: &RawValue,
) -> Result<(CleanupSeat, oneshot::Receiver<RunEnd>)> {
    let tool = &*route.declared.name;
    let placed = route.pool.cleanup_place(tool).await;
    let (place, end) = placed.map_err(|error| match error {
        PlaceError::UnknownTool => Error::new("the tool worker no longer has this tool"),
        PlaceError::Unavailable(reason) => {
            Error::new(format!("the tool worker does not run: {reason}"))
        }
    })?;
    let mut seat = CleanupSeat { place, has_started: false, is_over: false };
    let reason = match task.reason() {
        CleanupReason::Expired => "expired",
        _ => "cancelled",
    };
    let (records, responses) = (task.records(), task.responses());
    let key = task.idempotency_key("");
    let start = Start {
        run: RunNumber::Cleanup(seat.place.number),
        tool,
        arguments,
        records: &records,
        responses: &responses,
        attempt: None,
        idempotency_key: &key,
        reason: Some(reason),
        principal: None,
    };
    let lines = start.lines().map_err(|_| Error::new("the arguments of the task exceed 4 MiB"))?;
    for line in lines {
        seat.place.process.outbox.room().await;
        seat.place.process.outbox.send(&line);
    }
    seat.has_started = true;
    Ok((seat, end))
}
