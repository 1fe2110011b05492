//! Later rounds of a bridged call: the client repeats its request with a request state that names
//! the task.

use std::{future::Future, sync::Arc, time::Duration};

use outlive_protocol::{Call, Outcome, ProtocolError};
use outlive_tasks::store::{InputSource, OpenInput};
use tokio::time::{Instant, sleep, timeout_at};

use crate::server::{
    env::{environment::Env, task_backend::TaskBackend, task_error::unavailable},
    exec::bridge::{Patience, WaitOptions, attend, no_such_task, round, wait_with},
    run::{input::check_response, request_state::TaskRound},
    tasks::attendance::{Arrival, Attendance},
};

/// Interval between two attempts while the store does not respond.
const RETRY: Duration = Duration::from_millis(250);

/// Shortest time that the store has, whatever the deadline: a model may ask for the status at once.
const SHORTEST: Duration = Duration::from_secs(2);

/// Continues the wait of an earlier round, with the input responses of this one.
///
/// If the store does not respond until the end of the slice, the client gets another empty round: its
/// task runs meanwhile.
pub(crate) async fn continue_round(
    env: Arc<Env>,
    call: Arc<Call>,
    continued: TaskRound,
    options: WaitOptions,
) -> Result<Outcome, ProtocolError> {
    let tasks = env.tasks()?;
    let arrival = Arrival::of_round(continued.began_at, continued.round);
    let patience = Patience::new(tasks, &call, arrival, options).await;
    let attempts = Attempts::within(&patience);
    let attended = loop {
        let error = match attempts.run(resume(&env, &call, &continued, arrival)).await {
            Ok(attended) => break Ok(attended),
            Err(error) => error,
        };
        if let Err(error) = attempts.wait(tasks, error).await {
            break Err(error);
        }
    };
    match attended {
        Ok(Some(attendance)) => wait_with(attendance, patience).await,
        Ok(None) => Ok(no_such_task()),
        // The next round has no place for the responses of this one.
        Err(ProtocolError::Unavailable { .. })
            if patience.follows_rounds && continued.responses.is_empty() =>
        {
            let next = round(&env, &call, (&continued.task, arrival), &patience, Vec::new())?;
            Ok(Outcome::InputRequired(Box::new(next)))
        }
        Err(error) => Err(error),
    }
}

/// Attempts of a request to reach the store, until it must be answered.
#[derive(Clone, Copy)]
pub(crate) struct Attempts {
    deadline: Instant,
}

impl Attempts {
    /// Returns the attempts of a request with these options.
    pub(crate) async fn new(
        tasks: &TaskBackend,
        call: &Call,
        arrival: Arrival,
        options: &WaitOptions,
    ) -> Self {
        Self::within(&Patience::new(tasks, call, arrival, options.clone()).await)
    }

    fn within(patience: &Patience) -> Self {
        Self { deadline: patience.deadline.max(Instant::now() + SHORTEST) }
    }

    /// Waits for one attempt. It fails if the store has not responded at the deadline.
    pub(crate) async fn run<T>(
        self,
        attempt: impl Future<Output = Result<T, ProtocolError>>,
    ) -> Result<T, ProtocolError> {
        let late = |_| Err(ProtocolError::unavailable("the task store does not respond"));
        timeout_at(self.deadline, attempt).await.unwrap_or_else(late)
    }

    /// Waits before the next attempt.
    ///
    /// # Errors
    ///
    /// Returns the error of the attempt if the store did respond, if the deadline is over, or if the
    /// server drains.
    pub(crate) async fn wait(
        self,
        tasks: &TaskBackend,
        error: ProtocolError,
    ) -> Result<(), ProtocolError> {
        let is_last = Instant::now() + RETRY >= self.deadline;
        if is_last || !matches!(error, ProtocolError::Unavailable { .. }) {
            return Err(error);
        }
        tokio::select! {
            () = sleep(RETRY) => Ok(()),
            () = tasks.bridges.drained() => Err(error),
        }
    }
}

/// Stores the input responses of a round, and records that the request waits.
async fn resume(
    env: &Arc<Env>,
    call: &Arc<Call>,
    continued: &TaskRound,
    arrival: Arrival,
) -> Result<Option<Attendance>, ProtocolError> {
    respond(env.tasks()?, call, continued).await?;
    attend(env, call, &continued.task, arrival).await
}

/// Stores the input responses of a round.
async fn respond(tasks: &TaskBackend, call: &Call, round: &TaskRound) -> Result<(), ProtocolError> {
    if round.responses.is_empty() {
        return Ok(());
    }
    let principal = call.principal().key();
    let record = tasks.engine().store().get(principal, &round.task).await;
    let Some(record) = record.map_err(|error| unavailable(&error))? else { return Ok(()) };
    for OpenInput { name, request, .. } in &record.input_requests {
        if let Some(response) = round.responses.get(name) {
            check_response(request, response).map_err(|reason| {
                ProtocolError::invalid_params(format!(
                    "`params.inputResponses`: `{name}`: {reason}"
                ))
            })?;
        }
    }
    let responses = round.responses.clone().into_iter().collect();
    let max_bytes = tasks.allowance(principal).max_bytes;
    let store = tasks.engine().store();
    let taken =
        store.respond(principal, &round.task, InputSource::Client, responses, max_bytes).await;
    let taken = taken.map_err(|error| tasks.refused(call, &error))?.unwrap_or_default();
    tasks.note(call, &round.task, "updated", Some(format!("{taken} input responses stored")));
    Ok(())
}
