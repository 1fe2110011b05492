//! The list of tasks, and the page of one task.

use http::StatusCode;
use outlive::{
    people::{PeopleError, TaskView, Timeline},
    store::{JournalCursor, JournalItem, ListCursor, StoredSegments, TaskId, TaskQuery},
};

use super::visit::{PageError, Visit};
use crate::{
    http::{Reply, page},
    pages::{
        task::{self, Tab, TabName, TaskData, cursor_before},
        tasks::{self, Filter, TaskList},
    },
    task_query,
    urlencoded::Values,
};

/// Number of tasks on a page.
const LIMIT: usize = 50;

/// Number of journal entries on a page.
const ENTRIES: usize = 200;

/// Number of segments that the page of a task shows.
const SEGMENTS: u64 = 200;

/// Shows the list of tasks.
pub(crate) async fn list(visit: &Visit<'_>) -> Result<Reply, PageError> {
    let (people, visitor, values) = (visit.people(), visit.visitor(), visit.request.query());
    let query = query(visit, &values)?;
    let after = values.get("after").map(|it| people.open_cursor::<ListCursor>(visitor, it));
    let after = after.transpose()?;
    // Each takes a read connection of the store for some milliseconds.
    let (found, count, context) = tokio::join!(
        people.tasks(visitor, &query, after.as_ref(), LIMIT),
        people.count(visitor, &query),
        visit.context(),
    );
    let (found, count) = (found?, count?);
    let next = found.next.as_ref().and_then(|next| people.seal_cursor(visitor, next));
    let list = TaskList {
        filter: &Filter::read(&values),
        page: &found,
        count,
        next: next.as_deref(),
        is_first: after.is_none(),
    };
    let html = tasks::render(&context?, &list);
    Ok(page(StatusCode::OK, html.into_string()))
}

/// Reads the filter of an address.
pub(crate) fn query(visit: &Visit<'_>, values: &Values) -> Result<TaskQuery, PageError> {
    let now = visit.state.sign_in.vault.now();
    task_query::read(|name| values.get(name), now).map_err(PageError::Invalid)
}

/// Shows a task.
pub(crate) async fn show(visit: &Visit<'_>, id: &TaskId) -> Result<Reply, PageError> {
    let (people, visitor, values) = (visit.people(), visit.visitor(), visit.request.query());
    let view = people.task(visitor, id).await?;
    let timeline = people.timeline(visitor, id).await?;
    let workers = match people.workers(visitor).await {
        Ok(workers) => workers,
        Err(PeopleError::Forbidden(_)) => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    let part = Part::read(visit, &values, &view, &timeline).await?;
    let data =
        TaskData { view: &view, timeline: &timeline, workers: &workers, tab: part.tab(&values) };
    let html = task::render(&visit.context().await?, &data);
    Ok(page(StatusCode::OK, html.into_string()))
}

/// The data of the part of a task that the address selects.
enum Part {
    Output(StoredSegments),
    Journal { items: Vec<JournalItem>, next: Option<String> },
    Entry(Box<JournalItem>),
    Search,
    Arguments,
    Result,
    Audit(Vec<outlive::store::AuditRecord>),
    Hidden(TabName),
}

impl Part {
    async fn read(
        visit: &Visit<'_>,
        values: &Values,
        view: &TaskView,
        timeline: &Timeline,
    ) -> Result<Self, PageError> {
        let (people, visitor, id) = (visit.people(), visit.visitor(), &view.detail.task.view.id);
        let name = TabName::read(values, view);
        if name == TabName::Audit {
            return Ok(Self::Audit(people.task_audit(visitor, id).await?));
        }
        if !view.shows_contents {
            return Ok(Self::Hidden(name));
        }
        Ok(match name {
            TabName::Output => {
                let after = view.detail.segments.saturating_sub(SEGMENTS);
                let limit = usize::try_from(SEGMENTS).unwrap_or(usize::MAX);
                Self::Output(people.output(visitor, id, after, limit).await?)
            }
            TabName::Journal => Self::journal(visit, values, id, timeline).await?,
            TabName::Arguments => Self::Arguments,
            TabName::Result | TabName::Audit => Self::Result,
        })
    }

    async fn journal(
        visit: &Visit<'_>,
        values: &Values,
        id: &TaskId,
        timeline: &Timeline,
    ) -> Result<Self, PageError> {
        let (people, visitor) = (visit.people(), visit.visitor());
        if let Some(key) = values.get("key") {
            let before = cursor_before(timeline, key).ok_or(PageError::NotFound)?;
            let items = people.journal(visitor, id, before.as_ref(), 1).await?;
            let item = items.into_iter().find(|item| item.key == key);
            return Ok(Self::Entry(Box::new(item.ok_or(PageError::NotFound)?)));
        }
        if searches(values) {
            return Ok(Self::Search);
        }
        let after = values.get("after").map(|it| people.open_cursor::<JournalCursor>(visitor, it));
        let items = people.journal(visitor, id, after.transpose()?.as_ref(), ENTRIES).await?;
        let last = items.last().filter(|_| items.len() == ENTRIES);
        let next = last.map(|last| JournalCursor::new(last.recorded_at, last.key.clone()));
        let next = next.and_then(|next| people.seal_cursor(visitor, &next));
        Ok(Self::Journal { items, next })
    }

    fn tab<'a>(&'a self, values: &'a Values) -> Tab<'a> {
        match self {
            Self::Output(segments) => Tab::Output(segments),
            Self::Journal { items, next } => Tab::Journal { items, next: next.as_deref() },
            Self::Entry(item) => Tab::Entry(item),
            Self::Search => Tab::Search {
                find: values.get("find").unwrap_or_default(),
                failed: values.get("failed").is_some(),
            },
            Self::Arguments => Tab::Arguments,
            Self::Result => Tab::Result,
            Self::Audit(events) => Tab::Audit(events),
            Self::Hidden(name) => Tab::Hidden(*name),
        }
    }
}

/// Returns whether the address searches in the journal.
fn searches(values: &Values) -> bool {
    values.get("find").is_some_and(|find| !find.is_empty()) || values.get("failed").is_some()
}
