//! Operator commands for tasks of all callers: through the store of a server, without its URL or a
//! token.
//!
//! The server may run at the same time; it sees the changes.

use std::{collections::BTreeSet, process::ExitCode, sync::Arc, time::Duration};

use outlive::{
    client::input::{InputResponse, PendingInput},
    operator::Operator,
    store::{CancelOutcome, OpenInput, Phase, TaskId, TaskSummary},
    wire::RawJson,
};
use tokio::time::Instant;

use super::{
    end::{End, exit_code},
    no_task_named,
    resume::tell_answered,
};
use crate::{
    call::{
        form,
        input::{Filled, Prepared, fields},
        run_call::{in_words, no_field},
        screen::{Screen, shown},
    },
    error::{CliError, Kind, Result},
    store::{Store, end_of},
};

/// Time to wait for a server to end a cancelled task.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Poll interval while waiting for that.
const POLL: Duration = Duration::from_millis(100);

/// `outlive tasks list --all-callers`.
pub(super) async fn list(url: &str, is_json: bool) -> Result<ExitCode> {
    crate::store::list(url, is_json).await
}

/// `outlive tasks cancel --all-callers`.
pub(super) async fn cancel(url: &str, words: &[String], is_json: bool) -> Result<ExitCode> {
    if words.is_empty() {
        return Err(no_task_named());
    }
    let store = Store::open(url).await?;
    // Find all tasks before cancelling any, so that an unknown ID cancels nothing.
    let mut tasks = Vec::new();
    for word in words {
        tasks.push(store.find(word).await?);
    }
    let (screen, mut ends) = (Screen::new(), Vec::new());
    for task in &tasks {
        let end = stop(&store, task).await?;
        ends.push(end);
        let id = task.as_str();
        match (is_json, end) {
            (true, end) => {
                let told = serde_json::json!({"task": id, "state": end.as_str()});
                screen.data(&told.to_string());
            }
            (false, End::Cancelled) => screen.talk(&format!("{}: cancelled", shown(id))),
            (false, end) => {
                screen.talk(&format!("{}: already {}", shown(id), end.as_str()));
            }
        }
    }
    Ok(exit_code(&ends))
}

/// Cancels a task, and waits until it ends.
async fn stop(store: &Store, task: &TaskId) -> Result<End> {
    let operator: &Operator = &store.operator;
    let cancelled = operator.cancel(task).await.map_err(crate::store::trouble)?;
    if cancelled == Some(CancelOutcome::Cancelled) {
        return Ok(End::Cancelled);
    }
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let seen = seen(store, task).await?;
        match end_of(&seen) {
            Some("completed") => return Ok(End::Completed),
            Some("failed" | "expired") => return Ok(End::Failed),
            Some(_) => return Ok(End::Cancelled),
            None if Instant::now() >= deadline => {
                return Err(CliError::unreachable(format_args!(
                    "{} was asked to stop, but its server has not ended it yet",
                    shown(task.as_str())
                ))
                .remedy("check that its server runs; the server ends the task when it starts"));
            }
            None => tokio::time::sleep(POLL).await,
        }
    }
}

async fn seen(store: &Store, task: &TaskId) -> Result<TaskSummary> {
    let found = store.operator.store().inspect(task).await.map_err(crate::store::trouble)?;
    found.map(|found| found.task).ok_or_else(|| crate::store::no_task(task.as_str()))
}

/// `outlive tasks answer --all-callers`.
pub(super) async fn answer(
    url: &str,
    word: &str,
    prepared: &Prepared,
    is_json: bool,
) -> Result<ExitCode> {
    let (screen, store) = (Screen::new(), Store::open(url).await?);
    let task = store.find(word).await?;
    let asked = seen(&store, &task).await?.view;
    if asked.phase == Phase::Ended || asked.input_requests.is_empty() {
        match is_json {
            true => tell_answered(&screen, task.as_str(), false),
            false => screen.talk("the task has no open input requests"),
        }
        return Ok(ExitCode::SUCCESS);
    }
    let questions = read(asked.input_requests, &task)?;
    let known: BTreeSet<String> =
        questions.iter().flat_map(fields).map(|field| field.name).collect();
    if let (Some(unknown), Some(first)) = (prepared.unknown(&known), questions.first()) {
        return Err(no_field(unknown, first));
    }
    let mut answers: Vec<(String, RawJson)> = Vec::new();
    for question in &questions {
        let answer = ask_one(question, prepared, &screen).await?;
        let json = question.response(answer).map_err(CliError::usage)?;
        answers.push((question.key.clone().unwrap_or_default(), json));
    }
    let taken = store.operator.answer(&task, answers).await.map_err(crate::store::trouble)?;
    if taken.unwrap_or_default() == 0 {
        return Err(CliError::new(
            Kind::Failed,
            "another client has already answered this input request",
        ));
    }
    match is_json {
        true => tell_answered(&screen, task.as_str(), true),
        false => screen.talk("answered"),
    }
    Ok(ExitCode::SUCCESS)
}

/// Converts the input requests of a task for display as forms.
fn read(questions: Vec<OpenInput>, task: &TaskId) -> Result<Vec<PendingInput>> {
    let questions = questions
        .into_iter()
        .map(|input| PendingInput::of_task(input.request, task.as_str(), &input.name));
    questions.collect::<Result<_, _>>().map_err(|error| CliError::new(Kind::Failed, error))
}

/// Returns the response to one input request: from the command line, or from the user at the terminal.
pub(crate) async fn ask_one(
    question: &PendingInput,
    prepared: &Prepared,
    screen: &Arc<Screen>,
) -> Result<InputResponse> {
    let known = match prepared.fill(question)? {
        Filled::Answer(answer) => return Ok(answer),
        Filled::Partly(known) => known,
    };
    if !Screen::can_ask() {
        return Err(CliError::new(
            Kind::Unanswered,
            format!("input required, but there is no terminal: {}", in_words(question)),
        )
        .remedy("pass --answer FIELD=VALUE or --decline"));
    }
    let asked = question.clone();
    screen.hold();
    let filled = tokio::task::spawn_blocking(move || form::ask(&asked, &known)).await;
    screen.release();
    let filled = filled.unwrap_or_else(|error| Err(std::io::Error::other(error)));
    match filled {
        Ok(Some(answer)) => Ok(answer),
        Ok(None) => Err(CliError::new(Kind::Interrupted, "interrupted: no answer was sent")),
        Err(error) => Err(CliError::new(Kind::Unanswered, format!("the terminal failed: {error}"))),
    }
}
