//! `outlive inbox approve`, `deny` and `answer`.

use std::process::ExitCode;

use dialoguer::Confirm;
use outlive::client::input::{InputResponse, PendingInput};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    desk::{At, Desk},
    page,
    requests::Found,
};
use crate::{
    call::{
        form::{interruptible, theme},
        input::{Prepared, fields},
        run_call::no_field,
        screen::Screen,
    },
    error::{CliError, Kind, Result},
    tasks::ask_one,
};

/// Approves a call. The vote covers the digest of the call.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  outlive inbox approve 4f2a
  outlive inbox approve 4f2a --yes --digest 4ade91c2

On a terminal, the program shows the call and asks for confirmation, unless --yes is passed.")]
pub(super) struct Approve {
    #[command(flatten)]
    vote: Vote,
    /// Reason, which the caller and its model read
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

/// Denies a call. Nothing runs, and the caller gets the reason.
#[derive(clap::Args)]
#[command(after_help = "Example:
  outlive inbox deny 4f2a --reason \"not before the freeze is over\"")]
pub(super) struct Deny {
    #[command(flatten)]
    vote: Vote,
    /// Reason, which the caller and its model read
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

/// Selection and confirmation of a vote.
#[derive(clap::Args)]
struct Vote {
    /// Task ID or its unique prefix; TASK/KEY if the task has several requests
    #[arg(value_name = "REQUEST")]
    request: String,
    /// Decides only if the digest of the request starts with this
    #[arg(long, value_name = "DIGEST")]
    digest: Option<String>,
    /// Decides without asking for confirmation
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    at: At,
}

/// Answers an input request of a task: a form, or a visit to a URL.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  outlive inbox answer 4f2a
  outlive inbox answer 4f2a --answer quarter=3
  outlive inbox answer 4f2a --decline")]
pub(super) struct Answer {
    /// Task ID or its unique prefix; TASK/KEY if the task has several requests
    #[arg(value_name = "REQUEST")]
    request: String,
    #[command(flatten)]
    prepared: Prepared,
    #[command(flatten)]
    at: At,
}

pub(super) async fn approve(Approve { vote, reason }: Approve) -> Result<ExitCode> {
    decide(vote, "accept", reason).await
}

pub(super) async fn deny(Deny { vote, reason }: Deny) -> Result<ExitCode> {
    decide(vote, "decline", Some(reason)).await
}

pub(super) async fn answer(Answer { request, prepared, at }: Answer) -> Result<ExitCode> {
    let desk = at.open().await?;
    let answered = respond(&desk, &request, &prepared, at.json).await;
    desk.console.close().await;
    answered
}

async fn decide(vote: Vote, action: &str, reason: Option<String>) -> Result<ExitCode> {
    let desk = vote.at.open().await?;
    let decided = cast(&desk, &vote, action, reason).await;
    desk.console.close().await;
    decided
}

async fn cast(desk: &Desk, vote: &Vote, action: &str, reason: Option<String>) -> Result<ExitCode> {
    let found = desk.find(&vote.request).await?;
    let Found { request, detail, .. } = &found;
    if !request.is_approval() {
        return Err(CliError::usage("this request is not an approval")
            .remedy(format_args!("outlive inbox answer {}", request.task)));
    }
    if let Some(digest) = vote.digest.as_ref().filter(|it| !detail.digest.starts_with(it.as_str()))
    {
        let what = format!("the digest of the request does not start with `{digest}`");
        return Err(CliError::new(Kind::Failed, what)
            .remedy(format_args!("outlive inbox show {}", request.task)));
    }
    if !vote.yes && Screen::can_ask() {
        desk.screen.talk(&page::request(&found));
        let prompt = if action == "accept" { "Approve this call?" } else { "Deny this call?" };
        confirm(prompt).await?;
    }
    let body = json!({"digest": detail.digest, "action": action, "reason": reason});
    send(desk, &found, &body, vote.at.json).await
}

/// Asks for confirmation at the terminal.
///
/// # Errors
///
/// Returns an error if the user declines or presses Ctrl-C.
async fn confirm(prompt: &'static str) -> Result<()> {
    let asking = tokio::task::spawn_blocking(move || {
        let theme = theme();
        let confirm = Confirm::with_theme(&*theme).with_prompt(prompt).default(false);
        interruptible(confirm.interact().map_err(std::io::Error::from))
    });
    match asking.await.unwrap_or_else(|error| Err(std::io::Error::other(error))) {
        Ok(Some(true)) => Ok(()),
        Ok(_) => Err(CliError::new(Kind::Interrupted, "nothing was decided")),
        Err(error) => Err(CliError::new(Kind::Unanswered, format!("the terminal failed: {error}"))
            .remedy("pass --yes to decide without a confirmation")),
    }
}

async fn respond(desk: &Desk, word: &str, prepared: &Prepared, is_json: bool) -> Result<ExitCode> {
    let found = desk.find(word).await?;
    let Found { request, detail, .. } = &found;
    if request.is_approval() {
        return Err(CliError::usage("this request is an approval, which has no answer")
            .remedy(format_args!("outlive inbox approve {}", request.task)));
    }
    let Some(input) = detail.input.clone().filter(|_| detail.can_answer) else {
        let what = "you may not answer this request, or it is no longer open";
        return Err(CliError::new(Kind::Failed, what)
            .remedy(format_args!("outlive inbox show {}", request.task)));
    };
    let question = PendingInput::of_task(input, &request.task, &request.key)
        .map_err(|error| CliError::new(Kind::Failed, error))?;
    let known = fields(&question).into_iter().map(|field| field.name).collect();
    if let Some(unknown) = prepared.unknown(&known) {
        return Err(no_field(unknown, &question));
    }
    let (action, content) = match ask_one(&question, prepared, &desk.screen).await? {
        InputResponse::Accept(content) => ("accept", content),
        InputResponse::Decline => ("decline", None),
        InputResponse::Cancel => {
            desk.screen.talk("the request stays open");
            return Ok(ExitCode::SUCCESS);
        }
        other => {
            question.response(other).map_err(CliError::usage)?;
            return Err(CliError::usage("a person cannot answer this request"));
        }
    };
    let body = json!({"digest": detail.digest, "action": action, "content": content});
    send(desk, &found, &body, is_json).await
}

/// Sends a decision or an answer, and reports its effect.
async fn send(desk: &Desk, found: &Found, body: &Value, is_json: bool) -> Result<ExitCode> {
    #[derive(Deserialize)]
    struct Receipt {
        state: String,
        approvals: Option<u32>,
        needed: Option<u32>,
    }
    let path = format!("{}/answer", found.request.path());
    let reply = desk.console.post(&path, body).await?;
    let Receipt { state, approvals, needed } = reply.json()?;
    let accepts = body["action"] == "accept";
    if is_json {
        desk.screen.data(&reply.text());
    } else if state == "counted" {
        let (approvals, needed) = (approvals.unwrap_or_default(), needed.unwrap_or_default());
        desk.screen.talk(&format!("vote counted: {approvals} of {needed}"));
    } else {
        desk.screen.talk(match (found.request.is_approval(), accepts) {
            (true, true) => "approved",
            (true, false) => "denied",
            (false, true) => "answered",
            (false, false) => "declined",
        });
    }
    Ok(ExitCode::SUCCESS)
}
