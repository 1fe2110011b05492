//! The place of a call on an upstream connection. Waiting for one never occupies a worker: a task
//! waits in the store.

use outlive::server::{Durable, Error, durable::DurableError};

use super::route::Reached;
use crate::upstream::{AcquireError, ConnectionKey, Lease, acquire_permit, cancelled};

/// Returns the right to use the upstream connection of a call.
pub(super) async fn place(cx: &Durable, reached: &Reached) -> Result<Lease, AcquireError> {
    let settings = reached.member.settings();
    let (key, alive) = ConnectionKey::of_call(&settings, reached.shared.rules, cx.call());
    loop {
        let connected = tokio::select! {
            connected = reached.member.runtime.connect(&key, &alive) => connected,
            () = cx.cancelled() => return Err(AcquireError::Call(cancelled())),
        };
        let full = match connected {
            Ok(used) => return used.lease_for(cx).await,
            Err(full @ AcquireError::Full { .. }) => full,
            Err(error) => return Err(error),
        };
        match acquire_permit(cx, reached.shared.limit.queue()).await {
            // A process may have ended. The permit only orders the waiting tasks.
            Ok(permit) => drop(permit),
            Err(error) if is_no_capacity(&error) => return Err(full),
            Err(error) => return Err(AcquireError::Call(error)),
        }
    }
}

fn is_no_capacity(error: &Error) -> bool {
    matches!(error.durable_error(), Some(DurableError::NoCapacity { .. }))
}
