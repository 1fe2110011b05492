//! The overview of the system.

use http::{Method, StatusCode};
use outlive::store::{TaskQuery, TaskState};

use super::visit::{PageError, Visit};
use crate::{
    http::{Reply, page, redirect},
    pages::overview::{OverviewData, render},
};

/// Milliseconds that the charts show.
const SPAN: u64 = 24 * 3_600_000;

/// Number of quarantined tasks that are grouped by reason.
const QUARANTINED: usize = 200;

/// Shows the overview, or sends a delivery again.
pub(crate) async fn respond(visit: &Visit<'_>) -> Result<Reply, PageError> {
    let (people, visitor) = (visit.people(), visit.visitor());
    if *visit.request.method() == Method::POST {
        let values = visit.form()?;
        people.send_again(visitor, values.get("delivery").unwrap_or_default()).await?;
        return Ok(redirect("./overview"));
    }
    let in_state = |state| TaskQuery::default().state(Some(state));
    let since = visit.state.sign_in.vault.now().saturating_sub(SPAN);
    let stats = people.stats(visitor).await?;
    let input_required = people.count(visitor, &in_state(TaskState::InputRequired)).await?;
    let metrics = people.metrics(visitor, since).await?;
    let quarantined = in_state(TaskState::Quarantined);
    let quarantined = people.tasks(visitor, &quarantined, None, QUARANTINED).await?;
    let workers = people.workers(visitor).await?;
    let deliveries = people.deliveries(visitor).await?;
    let data = OverviewData {
        stats: &stats,
        input_required,
        metrics: &metrics,
        quarantined: &quarantined.tasks,
        workers: &workers,
        deliveries: &deliveries,
    };
    let html = render(&visit.context().await?, &data);
    Ok(page(StatusCode::OK, html.into_string()))
}
