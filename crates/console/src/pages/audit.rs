//! The audit log: which actor did which action.

use askama::Template;
use outlive::{
    people::{AuditFilter, AuditPage, bulk_name},
    store::AuditRecord,
};

use super::context::{Frame, PageContext, Section};
use crate::{
    html::{Html, Markup},
    status_text::cut,
    urlencoded::encode,
};

#[derive(Template)]
#[template(path = "audit.html")]
struct Page<'a> {
    frame: Frame<'a>,
    filters: [Field<'a>; 4],
    has_filter: bool,
    is_empty: bool,
    table: Markup,
    next: Option<String>,
    export: String,
    searched_to: Option<Markup>,
}

/// A field of the filter.
struct Field<'a> {
    name: &'static str,
    label: &'static str,
    value: &'a str,
}

#[derive(Template)]
#[template(path = "audit_table.html")]
struct Table {
    rows: Vec<Row>,
    has_task: bool,
    has_name: bool,
}

struct Row {
    at: Markup,
    actor: String,
    action: String,
    /// Short ID and address.
    task: Option<(String, String)>,
    reason: String,
    name: String,
}

/// Returns the audit log. `next` is the sealed position of older events.
pub(crate) fn render(
    cx: &PageContext,
    filter: &AuditFilter,
    page: &AuditPage,
    next: Option<&str>,
) -> Html {
    let filters = fields(filter);
    let given: Vec<String> = filters
        .iter()
        .filter(|field| !field.value.is_empty())
        .map(|field| format!("{}={}", field.name, encode(field.value)))
        .collect();
    let query = given.join("&");
    Html::new(&Page {
        frame: Frame::new(cx, Section::Audit).poll(15),
        has_filter: !given.is_empty(),
        filters,
        is_empty: page.records.is_empty(),
        table: table(cx, &page.records, true),
        next: next.map(|next| format!("?{query}&before={}", encode(next))),
        export: format!("{}audit.jsonl?{query}", cx.base),
        searched_to: page.searched_to.map(|at| cx.clock(at)),
    })
}

/// Returns events as a table.
pub(super) fn table(cx: &PageContext, records: &[AuditRecord], has_task: bool) -> Markup {
    let rows: Vec<Row> = records.iter().map(|record| Row::new(cx, record)).collect();
    let has_name = rows.iter().any(|row| !row.name.is_empty());
    Markup::new(&Table { rows, has_task, has_name })
}

fn fields(filter: &AuditFilter) -> [Field<'_>; 4] {
    let AuditFilter { actor, action, task, name } = filter;
    let task = task.as_ref().map(|task| task.as_str());
    let values = [
        ("actor", "Actor", actor.as_deref()),
        ("action", "Action", action.as_deref()),
        ("task", "Task", task),
        ("name", "Bulk action", name.as_deref()),
    ];
    values.map(|(name, label, value)| Field { name, label, value: value.unwrap_or_default() })
}

impl Row {
    fn new(cx: &PageContext, record: &AuditRecord) -> Self {
        let event = &record.event;
        let task = (!event.task.is_empty()).then(|| {
            let short: String = event.task.chars().take(8).collect();
            (short, format!("{}tasks/{}", cx.base, encode(&event.task)))
        });
        Self {
            at: cx.ago(record.at),
            actor: cut(&event.principal),
            action: cut(&event.action),
            task,
            reason: event.reason.as_deref().map(cut).unwrap_or_default(),
            name: bulk_name(event).map(cut).unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use outlive::{
        people::{AuditFilter, AuditPage},
        store::{AuditEvent, AuditRecord},
    };

    use super::render;
    use crate::pages::testing::{NOW, check_live, check_page, context, hostile};

    fn record(number: u64, text: &str) -> AuditRecord {
        let event =
            AuditEvent::new(format!("task{text}"), format!("ann{text}"), format!("voted{text}"));
        AuditRecord::new(number, NOW - number * 1_000, event.reason(Some(format!("by ben{text}"))))
    }

    #[test]
    fn events_are_rows_with_links() {
        let mut page = AuditPage::default();
        page.records = vec![record(2, ""), record(1, &hostile(""))];
        page.searched_to = Some(NOW - 86_400_000);
        let filter = AuditFilter { actor: Some(hostile("ann")), ..AuditFilter::default() };
        let html = render(&context(), &filter, &page, Some("sealed"));
        check_page(&html);
        check_live(&html);
        for part in ["href=\"./tasks/task\"", ">voted<", "by ben", "&amp;before=sealed", "17 Nov"] {
            assert!(html.as_str().contains(part), "{part}: {}", html.as_str());
        }
    }

    #[test]
    fn empty_log_says_so() {
        let html = render(&context(), &AuditFilter::default(), &AuditPage::default(), None);
        check_page(&html);
        assert!(html.as_str().contains("No event was recorded yet."));
    }
}
