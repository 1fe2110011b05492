//! The audit log, and its export.

use http::StatusCode;
use outlive::{people::AuditFilter, store::TaskId};

use super::visit::{PageError, Visit};
use crate::{
    api::event_line,
    http::{Reply, json_lines, page},
    pages::audit,
    urlencoded::Values,
};

/// Number of events on a page.
const LIMIT: usize = 100;

/// Maximum number of events in an export. The response is in memory as a whole.
const MAX_EXPORT: usize = 10_000;

/// Shows the audit log.
pub(crate) async fn show(visit: &Visit<'_>) -> Result<Reply, PageError> {
    let (people, visitor, values) = (visit.people(), visit.visitor(), visit.request.query());
    let filter = filter(&values);
    let before = values.get("before").map(|it| people.open_cursor::<u64>(visitor, it));
    let list = people.audit(visitor, &filter, before.transpose()?, LIMIT).await?;
    let next = list.next.and_then(|next| people.seal_cursor(visitor, &next));
    let html = audit::render(&visit.context().await?, &filter, &list, next.as_deref());
    Ok(page(StatusCode::OK, html.into_string()))
}

/// Returns the newest matching events as JSON lines.
pub(crate) async fn export(visit: &Visit<'_>) -> Result<Reply, PageError> {
    let filter = filter(&visit.request.query());
    let (mut lines, mut count, mut before) = (String::new(), 0, None);
    while count < MAX_EXPORT {
        let list = visit.people().audit(visit.visitor(), &filter, before, LIMIT).await?;
        for record in &list.records {
            lines.push_str(&event_line(record));
            lines.push('\n');
        }
        count += list.records.len();
        // A search that finds nothing in 20,000 events ends the export: each page costs as much.
        before = list.next.filter(|_| list.searched_to.is_none());
        if before.is_none() {
            break;
        }
    }
    Ok(json_lines(lines, "audit.jsonl"))
}

fn filter(values: &Values) -> AuditFilter {
    let text = |name: &'static str| {
        values.get(name).map(str::trim).filter(|it| !it.is_empty()).map(str::to_owned)
    };
    let (actor, action, name) = (text("actor"), text("action"), text("name"));
    AuditFilter { actor, action, task: text("task").map(TaskId::new), name }
}
