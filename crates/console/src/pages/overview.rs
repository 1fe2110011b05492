//! The overview: is the system healthy?

use std::collections::BTreeMap;

use askama::Template;
use outlive::{
    people::WorkerInfo,
    store::{Delivery, IndexedTask, MetricRow, StoreStats, TaskCount, TaskState, UnixMillis},
};

use super::context::{Frame, PageContext, Section};
use crate::{
    draw::{Quantiles, Stack, bars, lines},
    html::{Html, Markup},
    status_text::{cut, short},
    time_text::{self, count, number},
    urlencoded::encode,
};

/// Length of an interval of the charts.
const INTERVAL: u64 = 10 * 60_000;

/// Number of intervals of the charts: 24 hours.
const INTERVALS: usize = 144;

/// Time without a heartbeat after which a worker is shown as silent.
const SILENT: u64 = 60_000;

/// Maximum number of rows of a table.
const MAX_ROWS: usize = 50;

/// The data of the overview.
pub(crate) struct OverviewData<'a> {
    pub(crate) stats: &'a StoreStats,
    pub(crate) input_required: TaskCount,
    /// Counts of the last 24 hours, by minute and tool.
    pub(crate) metrics: &'a [MetricRow],
    /// The newest quarantined tasks.
    pub(crate) quarantined: &'a [IndexedTask],
    pub(crate) workers: &'a [WorkerInfo],
    /// Deliveries with a failed attempt.
    pub(crate) deliveries: &'a [Delivery],
}

#[derive(Template)]
#[template(path = "overview.html")]
struct Page<'a> {
    frame: Frame<'a>,
    facts: Vec<Fact>,
    charts: [Chart; 3],
    /// Start of an interval, and the numbers of all charts.
    numbers: Vec<(Markup, [String; 7])>,
    tools: Vec<ToolRow>,
    reasons: Vec<ReasonRow>,
    workers: Vec<WorkerRow>,
    deliveries: Vec<DeliveryRow>,
    can_send: bool,
}

/// A number at the top of the page.
struct Fact {
    icon: &'static str,
    value: String,
    label: &'static str,
    href: Option<String>,
}

/// A chart.
struct Chart {
    id: &'static str,
    title: &'static str,
    summary: String,
    drawing: Markup,
    keys: [(&'static str, &'static str); 2],
}

struct ToolRow {
    tool: String,
    href: String,
    cells: [String; 6],
}

struct ReasonRow {
    reason: String,
    tool: String,
    count: String,
    href: String,
}

struct WorkerRow {
    host: String,
    pid: u32,
    version: String,
    seen: Markup,
    is_silent: bool,
}

struct DeliveryRow {
    id: String,
    event: &'static str,
    target: String,
    task: (String, String),
    attempts: u32,
    error: String,
    /// Time of the next attempt; `None` for a dead delivery.
    next: Option<Markup>,
}

/// Returns the overview. Its form posts `delivery` to the page, to send that delivery again.
pub(crate) fn render(cx: &PageContext, data: &OverviewData<'_>) -> Html {
    let intervals = Intervals::new(cx.now, data.metrics);
    Html::new(&Page {
        frame: Frame::new(cx, Section::Overview).poll(10),
        facts: facts(cx, data, &intervals),
        charts: intervals.charts(),
        numbers: intervals.numbers(cx),
        tools: tools(cx, data.metrics),
        reasons: reasons(cx, data.quarantined),
        workers: data.workers.iter().take(MAX_ROWS).map(|it| WorkerRow::new(cx, it)).collect(),
        deliveries: data.deliveries.iter().take(MAX_ROWS).map(|it| delivery(cx, it)).collect(),
        can_send: cx.is_operator(),
    })
}

fn facts(cx: &PageContext, data: &OverviewData<'_>, intervals: &Intervals) -> Vec<Fact> {
    let stats = data.stats;
    let list = |state: TaskState| Some(format!("{}tasks?state={}", cx.base, state.as_str()));
    let due = stats.oldest_due.map_or_else(|| "none".to_owned(), time_text::duration);
    let waiting = data.input_required;
    let more = if waiting.more { "+" } else { "" };
    let all: u64 = intervals.stacks.iter().map(Stack::total).sum();
    let failed: u64 = intervals.stacks.iter().map(|it| it.failed).sum();
    // One digit after the decimal point, in whole numbers.
    let tenths = (failed * 1_000).checked_div(all).unwrap_or_default();
    let fact = |icon, value, label, href| Fact { icon, value, label, href };
    vec![
        fact("quarantined", number(stats.quarantined), "quarantined", list(TaskState::Quarantined)),
        fact("expired", due, "oldest due", list(TaskState::Queued)),
        fact("running", number(stats.running), "running", list(TaskState::Running)),
        fact(
            "input-required",
            format!("{}{more}", number(waiting.count as u64)),
            "input required",
            list(TaskState::InputRequired),
        ),
        fact(
            "failed",
            format!("{}.{} %", tenths / 10, tenths % 10),
            "failed, 24 h",
            Some(format!("{}tasks?state=failed&since=24h", cx.base)),
        ),
    ]
}

/// Metrics by interval.
struct Intervals {
    start: UnixMillis,
    stacks: Vec<Stack>,
    wait: Vec<Option<Quantiles>>,
    run: Vec<Option<Quantiles>>,
}

impl Intervals {
    fn new(now: UnixMillis, metrics: &[MetricRow]) -> Self {
        let start = (now / INTERVAL + 1).saturating_sub(INTERVALS as u64) * INTERVAL;
        let mut sums = vec![MetricRow::new(0, ""); INTERVALS];
        for row in metrics {
            let at = row.at.checked_sub(start).map(|since| since / INTERVAL);
            let at = at.and_then(|at| usize::try_from(at).ok());
            if let Some(sum) = at.and_then(|at| sums.get_mut(at)) {
                sum.add(row);
            }
        }
        let stack = |row: &MetricRow| {
            let [completed, failed, cancelled, expired] = row.ended;
            Stack { completed, failed, other: cancelled + expired }
        };
        Self {
            start,
            stacks: sums.iter().map(stack).collect(),
            wait: sums.iter().map(|row| Quantiles::new(&row.wait)).collect(),
            run: sums.iter().map(|row| Quantiles::new(&row.run)).collect(),
        }
    }

    fn charts(&self) -> [Chart; 3] {
        let most = self.stacks.iter().map(Stack::total).max().unwrap_or_default();
        let total: u64 = self.stacks.iter().map(Stack::total).sum();
        let summary = format!("{} in 24 h, at most {}", count(total, "task"), number(most));
        let title = "Ended tasks per 10 minutes";
        let ended = Chart {
            id: "ended",
            title,
            drawing: bars("ended", title, &format!("Stacked bars. {summary}."), &self.stacks),
            summary,
            keys: [("completed", "completed"), ("failed", "failed, hatched")],
        };
        let wait = quantiles("wait", "Wait until the first start", &self.wait);
        [ended, wait, quantiles("run", "Run time", &self.run)]
    }

    /// Returns the numbers of all intervals with a task.
    fn numbers(&self, cx: &PageContext) -> Vec<(Markup, [String; 7])> {
        let text = |value: Option<u64>| value.map_or_else(|| "–".to_owned(), millis);
        let row = |at: usize| {
            let Stack { completed, failed, other } = self.stacks[at];
            let (wait, run) = (self.wait[at], self.run[at]);
            let cells = [
                number(completed),
                number(failed),
                number(other),
                text(wait.map(|it| it.p50)),
                text(wait.map(|it| it.p95)),
                text(run.map(|it| it.p50)),
                text(run.map(|it| it.p95)),
            ];
            (cx.clock(self.start + at as u64 * INTERVAL), cells)
        };
        let has_task = |at: &usize| self.stacks[*at].total() > 0 || self.wait[*at].is_some();
        (0..INTERVALS).filter(has_task).map(row).collect()
    }
}

fn quantiles(id: &'static str, title: &'static str, intervals: &[Option<Quantiles>]) -> Chart {
    let last = intervals.iter().rev().flatten().next();
    let summary = match last {
        Some(last) => {
            format!("latest: p50 at most {}, p95 at most {}", millis(last.p50), millis(last.p95))
        }
        None => "no task in 24 h".to_owned(),
    };
    let description = format!("Two lines on a logarithmic scale, {summary}.");
    Chart {
        id,
        title,
        drawing: lines(id, title, &description, intervals),
        summary,
        keys: [("p50", "p50"), ("p95", "p95, dashed")],
    }
}

fn millis(millis: u64) -> String {
    time_text::duration(std::time::Duration::from_millis(millis))
}

fn tools(cx: &PageContext, metrics: &[MetricRow]) -> Vec<ToolRow> {
    let mut tools: BTreeMap<&str, MetricRow> = BTreeMap::new();
    for row in metrics {
        tools.entry(&row.tool).or_insert_with(|| MetricRow::new(0, "")).add(row);
    }
    let row = |(tool, sum): (&str, MetricRow)| {
        let [completed, failed, cancelled, expired] = sum.ended;
        let p95 = |histogram: &[u64]| {
            Quantiles::new(histogram).map_or_else(|| "–".to_owned(), |it| millis(it.p95))
        };
        let [completed, failed, cancelled, expired] =
            [completed, failed, cancelled, expired].map(number);
        let cells = [completed, failed, cancelled, expired, p95(&sum.wait), p95(&sum.run)];
        let href = format!("{}tasks?tool={}&since=24h", cx.base, encode(tool));
        ToolRow { tool: cut(tool), href, cells }
    };
    tools.into_iter().take(MAX_ROWS).map(row).collect()
}

/// Returns the quarantined tasks by reason and tool, most first.
fn reasons(cx: &PageContext, tasks: &[IndexedTask]) -> Vec<ReasonRow> {
    let mut reasons: BTreeMap<(String, &str), u64> = BTreeMap::new();
    for task in tasks {
        let reason = short(&task.summary, TaskState::Quarantined);
        *reasons.entry((reason, task.summary.view.tool.as_str())).or_default() += 1;
    }
    let mut reasons: Vec<_> = reasons.into_iter().collect();
    reasons.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let row = |((reason, tool), count): ((String, &str), u64)| ReasonRow {
        reason,
        tool: cut(tool),
        count: number(count),
        href: format!("{}tasks?state=quarantined&tool={}", cx.base, encode(tool)),
    };
    reasons.into_iter().take(MAX_ROWS).map(row).collect()
}

impl WorkerRow {
    fn new(cx: &PageContext, worker: &WorkerInfo) -> Self {
        Self {
            host: if worker.host.is_empty() { cut(&worker.id) } else { cut(&worker.host) },
            pid: worker.pid,
            version: cut(&worker.version),
            seen: cx.ago(worker.heartbeat_at),
            is_silent: cx.now.saturating_sub(worker.heartbeat_at) > SILENT,
        }
    }
}

fn delivery(cx: &PageContext, delivery: &Delivery) -> DeliveryRow {
    let task = &delivery.task;
    DeliveryRow {
        id: delivery.id.clone(),
        event: delivery.event.as_str(),
        target: cut(&delivery.target),
        task: (task.prefix().to_owned(), format!("{}tasks/{}", cx.base, encode(task.as_str()))),
        attempts: delivery.attempts,
        error: delivery.error.as_deref().map(cut).unwrap_or_default(),
        next: delivery.due_at.map(|at| cx.left(at)),
    }
}

#[cfg(test)]
mod tests {
    use outlive::{
        people::{Role, WorkerInfo},
        store::{Delivery, MetricRow, StoreStats, TaskCount, TaskEvent, TaskId, TaskState},
    };

    use super::{Intervals, OverviewData, render};
    use crate::pages::testing::{NOW, check_live, check_page, context, hostile, task};

    fn metrics() -> Vec<MetricRow> {
        let rows = (0..1_440).map(|minute| {
            let mut row = MetricRow::new(NOW - minute * 60_000, hostile("deploy"));
            (row.ended, row.wait[1], row.run[6]) = ([40, 1, 0, 1], 41, 41);
            row
        });
        rows.collect()
    }

    #[test]
    fn empty_system_has_an_overview() {
        let data = OverviewData {
            stats: &StoreStats::default(),
            input_required: TaskCount::default(),
            metrics: &[],
            quarantined: &[],
            workers: &[],
            deliveries: &[],
        };
        let page = render(&context(), &data);
        check_page(&page);
        check_live(&page);
        assert!(page.as_str().contains("No worker has reported."), "{}", page.as_str());
    }

    #[test]
    fn overview_shows_charts_reasons_workers_and_deliveries() {
        let mut worker = WorkerInfo::new("w1");
        (worker.host, worker.version) = (hostile("host-1"), hostile("0.1.0"));
        worker.heartbeat_at = NOW - 90_000;
        let dead =
            Delivery::new("d1", TaskId::new("task-1"), TaskEvent::TaskEnded, hostile("chat"), NOW)
                .attempts(10)
                .due_at(None)
                .error(Some(hostile("410")));
        let stats = StoreStats::default().quarantined(214).running(41);
        let quarantined = [task(TaskState::Quarantined), task(TaskState::Quarantined)];
        let metrics = metrics();
        let data = OverviewData {
            stats: &stats,
            input_required: TaskCount::default(),
            metrics: &metrics,
            quarantined: &quarantined,
            workers: &[worker],
            deliveries: &[dead],
        };
        let page = render(&context(), &data);
        check_page(&page);
        for part in [
            "<b>214</b>",
            "2.3 %",
            "after 5 crashes",
            "host-1",
            "silent",
            "task.ended",
            "dead",
            "name=\"delivery\" value=\"d1\"",
            "latest: p50 at most 30 ms",
        ] {
            assert!(page.as_str().contains(part), "{part}: {}", page.as_str());
        }
        let mut viewer = context();
        viewer.role = Role::Viewer;
        assert!(!render(&viewer, &data).as_str().contains("Send again"));
    }

    #[test]
    fn metrics_are_added_to_their_interval() {
        let intervals = Intervals::new(NOW, &metrics());
        assert_eq!(intervals.stacks.len(), 144);
        assert_eq!(intervals.stacks[142].completed, 400);
        assert!(Intervals::new(5, &metrics()).stacks.iter().all(|it| it.total() == 0));
    }
}
