//! Actions on one task: a confirmation, then the action.

use http::{Method, StatusCode};
use outlive::{
    people::{PeopleError, TaskView},
    store::{CancelOutcome, PurgeOutcome, RetryOutcome, TaskId},
};
use serde_json::Value;

use super::visit::{PageError, Visit};
use crate::{
    http::{Reply, page, redirect},
    pages::confirm::{TaskAction, editable_arguments, render},
    urlencoded::{Values, encode},
};

/// The result of an action: the page of the console to open, or a text for the confirmation.
type Outcome = Result<String, String>;

/// Shows the confirmation of an action, or performs the action.
pub(crate) async fn respond(
    visit: &Visit<'_>,
    id: &TaskId,
    action: &str,
) -> Result<Reply, PageError> {
    let view = visit.people().task(visit.visitor(), id).await?;
    let action = TaskAction::from_name(action).ok_or(PageError::NotFound)?;
    if *visit.request.method() != Method::POST {
        let html = render(&visit.context().await?, action, &view, None, None);
        return Ok(page(StatusCode::OK, html.into_string()));
    }
    let values = visit.form()?;
    let outcome = match action {
        TaskAction::Cancel => cancel(visit, id).await?,
        TaskAction::Retry => retry(visit, id).await?,
        TaskAction::Rerun => rerun(visit, id, &view, &values).await?,
        TaskAction::Purge => purge(visit, id, &values).await?,
    };
    match outcome {
        Ok(next) => Ok(redirect(&format!("{}{next}", visit.request.base()))),
        Err(error) => {
            let typed = values.get("arguments");
            let html = render(&visit.context().await?, action, &view, typed, Some(&error));
            Ok(page(StatusCode::UNPROCESSABLE_ENTITY, html.into_string()))
        }
    }
}

async fn cancel(visit: &Visit<'_>, id: &TaskId) -> Result<Outcome, PageError> {
    Ok(match visit.people().cancel(visit.visitor(), id).await? {
        CancelOutcome::Cancelled | CancelOutcome::Requested => Ok(address(id)),
        CancelOutcome::AlreadyEnded => Err("The task has ended. Nothing was changed.".to_owned()),
    })
}

async fn retry(visit: &Visit<'_>, id: &TaskId) -> Result<Outcome, PageError> {
    Ok(match visit.people().retry(visit.visitor(), id).await? {
        RetryOutcome::Queued(_) => Ok(address(id)),
        RetryOutcome::NotQuarantined(_) => {
            Err("The task is not quarantined. Nothing was changed.".to_owned())
        }
    })
}

async fn rerun(
    visit: &Visit<'_>,
    id: &TaskId,
    view: &TaskView,
    values: &Values,
) -> Result<Outcome, PageError> {
    let unchanged = editable_arguments(view);
    let typed = values.get("arguments").map(|text| text.replace("\r\n", "\n"));
    let is_unchanged = typed.as_deref().map(str::trim) == unchanged.as_deref().map(str::trim);
    let arguments = match typed.filter(|_| unchanged.is_some() && !is_unchanged) {
        None => None,
        Some(text) => match serde_json::from_str::<Value>(&text) {
            Ok(arguments) => Some(arguments),
            Err(error) => return Ok(Err(format!("The arguments are not JSON: {error}."))),
        },
    };
    match visit.people().rerun(visit.visitor(), id, arguments).await {
        Ok(new) => Ok(Ok(address(&new))),
        Err(error @ (PeopleError::Invalid(_) | PeopleError::Rejected(_))) => {
            Ok(Err(format!("No task was created: {error}.")))
        }
        Err(error) => Err(error.into()),
    }
}

async fn purge(visit: &Visit<'_>, id: &TaskId, values: &Values) -> Result<Outcome, PageError> {
    let force = values.get("force").is_some();
    Ok(match visit.people().purge(visit.visitor(), id, force).await? {
        PurgeOutcome::Purged(..) => Ok("tasks".to_owned()),
        PurgeOutcome::NotEnded(_) => {
            Err("The task has not ended. Cancel it, or tick the box to delete it now.".to_owned())
        }
        PurgeOutcome::CleanupPending => {
            Err("The cleanup of the task is pending. Try again after it.".to_owned())
        }
    })
}

fn address(id: &TaskId) -> String {
    format!("tasks/{}", encode(id.as_str()))
}
