//! The right of a call to use an upstream connection, with a token for it.
//!
//! A task outlives the access token of its principal. If its exchanged token has expired and cannot
//! be renewed, the task waits for the principal's next request. It is parked meanwhile.

use std::time::Duration;

use outlive::server::{Durable, Error};

use super::{connect, failure, place::place, route::Reached};
use crate::{
    settings::AuthKind,
    status::{Problem, State},
    upstream::{AcquireError, ConnectionKey, Lease},
};

/// Longest interval in which a task checks for a token.
const MAX_INTERVAL: Duration = Duration::from_secs(60);

/// Checks of one request for a token. They take about five hours.
const MAX_WAITS: u32 = 300;

/// The waits of one request for a token.
#[derive(Debug)]
pub(super) struct Waits {
    /// Number of the request among those of the call.
    request: usize,
    count: u32,
    /// Whether the user was asked to log in.
    is_login_requested: bool,
}

impl Waits {
    /// Returns the waits of a request, after those that earlier runs have recorded.
    pub(super) fn new(cx: &Durable, request: usize) -> Result<Self, Error> {
        let mut waits = Self { request, count: 0, is_login_requested: false };
        // Only tasks wait.
        while cx.task_id().is_some() && cx.get::<bool>(waits.key("waited"))?.is_some() {
            waits.count += 1;
        }
        Ok(waits)
    }

    fn key(&self, what: &str) -> String {
        format!("token/{}/{what}/{}", self.request, self.count)
    }
}

/// Returns the right to use the upstream connection of a call, with a token for it.
pub(super) async fn acquire(
    cx: &Durable,
    reached: &Reached,
    waits: &mut Waits,
) -> Result<Lease, AcquireError> {
    let settings = reached.member.settings();
    let (key, _) = ConnectionKey::of_call(&settings, reached.shared.rules, cx.call());
    loop {
        let problem = match place(cx, reached).await {
            Ok(lease) => {
                let missing = lease.connection().missing_token().await;
                let Some(error) = missing else {
                    if waits.count > 0 {
                        cx.set_status_message("continues with a new token of its user");
                    }
                    return Ok(lease);
                };
                lease.connection().retire();
                reached.member.state().problem_of(&error)
            }
            Err(AcquireError::Problem { problem, .. }) if problem.is_of_principal => problem,
            Err(error) => return Err(error),
        };
        match settings.oauth().map(|auth| &auth.kind) {
            _ if problem.state != State::NeedsLogin => return Err(failed(reached, problem)),
            Some(AuthKind::EachUser) => {
                let request =
                    connect::request_login(cx, reached, &problem, waits.is_login_requested);
                request.await.map_err(AcquireError::Call)?;
                waits.is_login_requested = true;
            }
            Some(AuthKind::Exchange(_)) if cx.task_id().is_some() && waits.count < MAX_WAITS => {
                Box::pin(wait(cx, reached, &key, waits)).await.map_err(AcquireError::Call)?;
            }
            _ => return Err(failed(reached, problem)),
        }
    }
}

/// Returns the error of a call whose token is missing. It is not worth a retry.
fn failed(reached: &Reached, problem: Problem) -> AcquireError {
    let error = AcquireError::Problem { problem, retry_after: None };
    AcquireError::Call(failure::of_acquire(reached, error))
}

/// Waits for the next check of a token.
async fn wait(
    cx: &Durable,
    reached: &Reached,
    key: &ConnectionKey,
    waits: &mut Waits,
) -> Result<(), Error> {
    let name = reached.name();
    cx.set_status_message(format!(
        "waits for the next request of its user: the token for upstream `{name}` has expired"
    ));
    if let Some(principal) = key.principal() {
        reached.shared.credentials.request_token(&name, principal).await;
    }
    let interval = Duration::from_secs(1 << waits.count.min(6)).min(MAX_INTERVAL);
    cx.sleep(waits.key("timer"), interval).await?;
    cx.step(waits.key("waited"), async || Ok(true)).await?;
    waits.count += 1;
    Ok(())
}
