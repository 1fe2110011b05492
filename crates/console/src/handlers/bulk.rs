//! Bulk actions: the confirmation, the start and the state.

use http::{Method, StatusCode};
use outlive::{
    people::{BulkAction, BulkId, BulkRequest, PeopleError, Role},
    store::{TaskId, UnixMillis},
};

use super::{
    tasks::query,
    visit::{PageError, Visit},
};
use crate::{
    http::{Reply, page, redirect},
    pages::{
        bulk::{self, Confirm, Target},
        tasks::Filter,
    },
    urlencoded::{Values, encode},
};

/// Number of tasks that the confirmation reads as examples.
const EXAMPLES: usize = 5;

/// Shows the confirmation of a bulk action, or starts the action.
pub(crate) async fn respond(visit: &Visit<'_>) -> Result<Reply, PageError> {
    if visit.visitor().role() != Role::Operator {
        return Err(PageError::Forbidden("Only an operator may do this. Ask one.".to_owned()));
    }
    if *visit.request.method() != Method::POST {
        let now = visit.state.sign_in.vault.now();
        return confirm(visit, &visit.request.query(), now, None).await;
    }
    let values = visit.form()?;
    let number = |name: &'static str| values.get(name).and_then(|it| it.parse::<u64>().ok());
    let missing =
        || PageError::Invalid("The form is not complete. Go back to the list.".to_owned());
    let before = number("before").ok_or_else(missing)?;
    match start(visit, &values, before, number("expect").ok_or_else(missing)?).await {
        Ok(next) => Ok(redirect(&format!("{}{next}", visit.request.base()))),
        Err(StartError::Invalid(error)) => confirm(visit, &values, before, Some(&error)).await,
        Err(StartError::Page(error)) => Err(error),
    }
}

/// Shows the state of a bulk action, or continues it.
pub(crate) async fn status(visit: &Visit<'_>, id: &str) -> Result<Reply, PageError> {
    let (people, visitor, id) = (visit.people(), visit.visitor(), BulkId::new(id));
    if *visit.request.method() == Method::POST {
        visit.form()?;
        people.bulk_continue(visitor, &id).await?;
        return Ok(redirect(&format!("{}{}", visit.request.base(), visit.request.path)));
    }
    let status = people.bulk_status(visitor, &id).await?;
    let html = bulk::status(&visit.context().await?, &status);
    Ok(page(StatusCode::OK, html.into_string()))
}

/// The reason why a bulk action was not started.
enum StartError {
    /// The operator corrects a value.
    Invalid(String),
    Page(PageError),
}

impl From<PageError> for StartError {
    fn from(error: PageError) -> Self {
        Self::Page(error)
    }
}

impl From<PeopleError> for StartError {
    fn from(error: PeopleError) -> Self {
        match error {
            PeopleError::Invalid(errors) => {
                let texts = errors.iter().map(|error| match error.field.as_str() {
                    "name" => format!("The name {}.", error.message),
                    "expect" => format!("The number of tasks {}.", error.message),
                    _ => format!("{error}."),
                });
                Self::Invalid(texts.collect::<Vec<_>>().join(" "))
            }
            error => Self::Page(error.into()),
        }
    }
}

/// Starts a bulk action. Returns the page of the console to open.
async fn start(
    visit: &Visit<'_>,
    values: &Values,
    before: UnixMillis,
    expect: u64,
) -> Result<String, StartError> {
    let (people, visitor) = (visit.people(), visit.visitor());
    let (action, name) = (action(values)?, values.get("name").unwrap_or_default());
    let ids = ids(values);
    if !ids.is_empty() {
        people.act_on_selected(visitor, action, &ids, name).await?;
        return Ok(format!("audit?name={}", encode(name.trim())));
    }
    let query = query(visit, values)?;
    let expect = usize::try_from(expect).unwrap_or(usize::MAX);
    let request = BulkRequest { action, query, before, name: name.to_owned(), expect };
    let id = people.bulk(visitor, request).await?;
    Ok(format!("bulk/{}", encode(id.as_str())))
}

async fn confirm(
    visit: &Visit<'_>,
    values: &Values,
    before: UnixMillis,
    error: Option<&str>,
) -> Result<Reply, PageError> {
    let (people, visitor, ids) = (visit.people(), visit.visitor(), ids(values));
    let filter = Filter::read(values);
    let (selected, found);
    let target = match ids.is_empty() {
        false => {
            selected = people.selected(visitor, &ids).await?;
            Target::Selected(&selected)
        }
        true => {
            let query = query(visit, values)?;
            let until = query.until.map_or(before, |until| until.min(before));
            let query = query.until(Some(until));
            found = people.tasks(visitor, &query, None, EXAMPLES).await?;
            let count = people.count(visitor, &query).await?;
            Target::Matching { filter: &filter, count, newest: &found.tasks }
        }
    };
    let name = values.get("name").unwrap_or_default();
    let confirm = Confirm { action: action(values)?, target, before, name, error };
    let html = bulk::confirm(&visit.context().await?, &confirm);
    let status = if error.is_some() { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::OK };
    Ok(page(status, html.into_string()))
}

fn action(values: &Values) -> Result<BulkAction, PageError> {
    let action = values.get("action").and_then(BulkAction::from_name);
    action.ok_or_else(|| PageError::Invalid("The action is unknown.".to_owned()))
}

/// Returns the selected tasks; empty if the action covers all tasks that match.
fn ids(values: &Values) -> Vec<TaskId> {
    values.all("id").map(TaskId::new).collect()
}
