//! The inbox, and the page of one input request.

use http::{Method, StatusCode};
use outlive::{
    people::PeopleError,
    store::{InboxCursor, TaskId},
};

use super::visit::{PageError, Visit};
use crate::{
    http::{Reply, page, redirect},
    pages::{
        inbox, input_request,
        request::{Submission, read_answer},
    },
    urlencoded::encode,
};

/// Number of input requests on a page.
const LIMIT: usize = 50;

/// Number of settled requests that an empty inbox shows.
const SETTLED: usize = 5;

/// Shows the inbox.
pub(crate) async fn show(visit: &Visit<'_>) -> Result<Reply, PageError> {
    let (people, visitor, query) = (visit.people(), visit.visitor(), visit.request.query());
    let after = query.get("after").map(|it| people.open_cursor::<InboxCursor>(visitor, it));
    let after = after.transpose()?;
    let list = people.inbox(visitor, after.as_ref(), LIMIT).await?;
    let settled = match list.items.is_empty() {
        true => people.settled(visitor, SETTLED).await?,
        false => Vec::new(),
    };
    let next = list.next.as_ref().and_then(|next| people.seal_cursor(visitor, next));
    let next = next.map(|next| format!("?after={}", encode(&next)));
    let html = inbox::render(&visit.context().await?, &list, &settled, next.as_deref());
    Ok(page(StatusCode::OK, html.into_string()))
}

/// Shows an input request, or records the answer of its form.
pub(crate) async fn input_request(
    visit: &Visit<'_>,
    task: &TaskId,
    key: &str,
) -> Result<Reply, PageError> {
    let (people, visitor) = (visit.people(), visit.visitor());
    let view = people.input_request(visitor, task, key).await?;
    if *visit.request.method() != Method::POST {
        let html = input_request::render(&visit.context().await?, &view, &Submission::default());
        return Ok(page(StatusCode::OK, html.into_string()));
    }
    let values = visit.form()?;
    let answered = match read_answer(&view, &values) {
        Ok(answer) => people.answer(visitor, task, key, answer).await,
        Err(submission) => {
            let html = input_request::render(&visit.context().await?, &view, &submission);
            return Ok(page(StatusCode::BAD_REQUEST, html.into_string()));
        }
    };
    let (status, submission) = match answered {
        Ok(receipt) => match input_request::rejection(receipt) {
            // The page of the request then shows the decision.
            None => {
                return Ok(redirect(&format!("{}{}", visit.request.base(), visit.request.path)));
            }
            Some(notice) => (StatusCode::CONFLICT, Submission::notice(&values, notice)),
        },
        Err(PeopleError::Invalid(errors)) => {
            (StatusCode::UNPROCESSABLE_ENTITY, Submission::invalid(&values, &errors))
        }
        Err(error) => return Err(error.into()),
    };
    // The request may have been settled meanwhile.
    let view = people.input_request(visitor, task, key).await?;
    let html = input_request::render(&visit.context().await?, &view, &submission);
    Ok(page(status, html.into_string()))
}
