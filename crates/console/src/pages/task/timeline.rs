//! The lanes of a task's timeline, and the same data as a table.

use std::{cmp::Reverse, collections::HashMap};

use outlive::{
    people::{Timeline, WorkerInfo, WorkerSpan},
    store::{EntryKind, InputRequestRecord, InputRequestState, TimelineEntry, UnixMillis},
};

use crate::{
    draw::{Bar, Lane, Mark, timeline},
    html::Markup,
    pages::context::PageContext,
    status_text::cut,
    time_text::{count, duration, span},
    urlencoded::encode,
};

/// Number of bars above which the table has only the longest ones.
const MAX_ROWS: usize = 100;

/// Number of the longest bars in such a table.
const LONGEST: usize = 25;

/// A timeline with its table.
pub(super) struct TimelinePart {
    pub(super) drawing: Markup,
    pub(super) from: Markup,
    pub(super) to: Markup,
    pub(super) rows: Vec<Row>,
    /// Number of bars, if the table has only the longest ones.
    pub(super) total: Option<String>,
}

/// A row of the table.
pub(super) struct Row {
    pub(super) lane: &'static str,
    pub(super) name: String,
    pub(super) href: Option<String>,
    pub(super) from: Markup,
}

/// Names of workers by their IDs.
pub(super) struct WorkerNames<'a>(HashMap<&'a str, String>);

impl<'a> WorkerNames<'a> {
    pub(super) fn new(workers: &'a [WorkerInfo]) -> Self {
        let name = |it: &WorkerInfo| format!("{} · {}", cut(&it.host), it.pid);
        Self(workers.iter().map(|it| (it.id.as_str(), name(it))).collect())
    }

    /// Returns host and process of a worker, or its ID if it has not reported them.
    pub(super) fn get(&self, id: &str) -> String {
        self.0.get(id).cloned().unwrap_or_else(|| cut(id))
    }
}

/// Returns the timeline of a task; `None` if nothing has happened yet.
pub(super) fn part(
    cx: &PageContext,
    data: &Timeline,
    names: &WorkerNames<'_>,
) -> Option<TimelinePart> {
    let end = data.ended_at.unwrap_or(cx.now);
    let lanes = [
        Lane { label: "workers", bars: workers(data, names, end) },
        Lane { label: "steps", bars: data.entries.iter().filter_map(step).collect() },
        Lane {
            label: "inputs",
            bars: data.inputs.iter().filter_map(|it| input(it, end)).collect(),
        },
        Lane { label: "timers", bars: timers(data) },
    ];
    let drawing = timeline(&lanes, &description(&lanes))?;
    let bars = || lanes.iter().flat_map(|lane| lane.bars.iter().map(|bar| (lane.label, bar)));
    let from = bars().map(|(_, bar)| bar.from).min()?;
    let to = bars().map(|(_, bar)| bar.to).max()?;
    let mut rows: Vec<_> = bars().collect();
    let total = rows.len();
    if total > MAX_ROWS {
        rows.sort_by_key(|(_, bar)| Reverse(bar.to - bar.from));
        rows.truncate(LONGEST);
    }
    rows.sort_by_key(|(_, bar)| bar.from);
    let row = |(lane, bar): (&'static str, &Bar)| Row {
        lane,
        name: bar.name.clone(),
        href: bar.href.clone(),
        from: cx.second(bar.from),
    };
    Some(TimelinePart {
        drawing,
        from: cx.clock(from),
        to: cx.clock(to),
        rows: rows.into_iter().map(row).collect(),
        total: (total > MAX_ROWS).then(|| count(total as u64, "bar")),
    })
}

/// Returns the address of a journal entry.
pub(super) fn entry_address(key: &str) -> String {
    format!("?view=journal&key={}", encode(key))
}

fn workers(data: &Timeline, names: &WorkerNames<'_>, end: UnixMillis) -> Vec<Bar> {
    let bar = |it: &WorkerSpan| {
        let to = it.until.unwrap_or(end).max(it.from);
        let state = match (it.lost, it.until) {
            (true, _) => ", lease lost",
            (false, None) if data.ended_at.is_none() => ", runs",
            _ => "",
        };
        let name = format!("{}, {}{state}", names.get(&it.worker), span(to - it.from));
        let mark = if it.lost { Mark::LostWorker } else { Mark::Worker };
        Bar { from: it.from, to, name, href: None, mark }
    };
    data.workers.iter().map(bar).collect()
}

fn step(entry: &TimelineEntry) -> Option<Bar> {
    let (mark, result) = match entry.kind {
        EntryKind::Step => (Mark::Step, "done"),
        EntryKind::FailedStep => (Mark::FailedStep, "failed"),
        EntryKind::Input | EntryKind::Timer => return None,
    };
    let length = entry.duration.unwrap_or_default();
    let millis = u64::try_from(length.as_millis()).unwrap_or(u64::MAX);
    let name = match entry.duration {
        Some(length) => format!("{}, {}, {result}", cut(&entry.key), duration(length)),
        None => format!("{}, {result}", cut(&entry.key)),
    };
    let (from, to) = (entry.recorded_at.saturating_sub(millis), entry.recorded_at);
    Some(Bar { from, to, name, href: Some(entry_address(&entry.key)), mark })
}

fn input(request: &InputRequestRecord, end: UnixMillis) -> Option<Bar> {
    // A request that an older store recorded has no time.
    let from = Some(request.opened_at).filter(|at| *at > 0)?;
    let to = request.settled_at.unwrap_or(end).max(from);
    let what = match request.name.strip_prefix('#') {
        Some(name) => name.split('#').next().unwrap_or(name),
        None => &request.name,
    };
    let (mark, state) = match request.state {
        InputRequestState::Open => (Mark::OpenInput, "open"),
        InputRequestState::Answered => (Mark::Input, "settled"),
        InputRequestState::Withdrawn => (Mark::Input, "withdrawn"),
    };
    let name = format!("{}, {}, {state}", cut(what), span(to - from));
    Some(Bar { from, to, name, href: None, mark })
}

fn timers(data: &Timeline) -> Vec<Bar> {
    let timers = data.timers.iter().map(|it| {
        let to = it.until.max(it.from);
        let name = format!("{}, {}", cut(&it.key), span(to - it.from));
        Bar { from: it.from, to, name, href: Some(entry_address(&it.key)), mark: Mark::Timer }
    });
    timers.collect()
}

fn description(lanes: &[Lane; 4]) -> String {
    let [workers, steps, inputs, timers] = lanes.each_ref().map(|lane| lane.bars.len() as u64);
    let failed = lanes[1].bars.iter().filter(|bar| bar.mark == Mark::FailedStep).count();
    format!(
        "{}, {} of which {failed} failed, {}, {}",
        count(workers, "worker"),
        count(steps, "step"),
        count(inputs, "input request"),
        count(timers, "timer")
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use outlive::{
        people::{Timeline, TimerSpan, WorkerInfo, WorkerSpan},
        store::{EntryKind, TimelineEntry},
    };

    use super::{WorkerNames, part};
    use crate::pages::testing::{NOW, context, hostile};

    fn step(at: u64, key: &str, kind: EntryKind) -> TimelineEntry {
        TimelineEntry::new(key, kind, at, Some(Duration::from_millis(812)))
    }

    #[test]
    fn task_without_events_has_no_timeline() {
        assert!(part(&context(), &Timeline::default(), &WorkerNames::new(&[])).is_none());
    }

    #[test]
    fn lanes_have_workers_steps_and_timers() {
        let mut info = WorkerInfo::new("w1");
        (info.host, info.pid) = ("host-1".to_owned(), 4_821);
        let mut lost = WorkerSpan::new("w1", NOW - 9_000);
        (lost.until, lost.lost) = (Some(NOW - 7_000), true);
        let mut data = Timeline::default();
        data.workers = vec![lost, WorkerSpan::new("w2", NOW - 5_000)];
        data.entries = vec![
            step(NOW - 8_000, "push/eu", EntryKind::Step),
            step(NOW - 4_000, &hostile("push"), EntryKind::FailedStep),
        ];
        data.timers = vec![TimerSpan::new("soak/eu", NOW - 1_000, NOW + 60_000)];
        let part = part(&context(), &data, &WorkerNames::new(&[info])).unwrap();
        let names: Vec<&str> = part.rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names[0], "host-1 · 4821, 2 s, lease lost");
        assert!(names.contains(&"push/eu, 812 ms, done") && names.contains(&"w2, 5 s, runs"));
        assert!(names.contains(&"soak/eu, 1 min"), "{names:?}");
        let svg = part.drawing.to_string();
        assert!(svg.contains("href=\"?view=journal&amp;key=push%2Feu\""), "{svg}");
        assert!(svg.contains("2 workers, 2 steps of which 1 failed"), "{svg}");
        assert!(!svg.contains('\u{202e}') && !svg.contains("<script"), "{svg}");
    }

    #[test]
    fn table_of_a_long_journal_has_the_longest_steps() {
        let mut data = Timeline::default();
        data.entries = (0..10_000)
            .map(|at| {
                let length = Duration::from_millis(if at == 5_000 { 900 } else { 5 });
                TimelineEntry::new(
                    format!("step/{at}"),
                    EntryKind::Step,
                    NOW + at * 10,
                    Some(length),
                )
            })
            .collect();
        let part = part(&context(), &data, &WorkerNames::new(&[])).unwrap();
        assert_eq!((part.rows.len(), part.total.as_deref()), (25, Some("10,000 bars")));
        assert!(part.rows.iter().any(|row| row.name.starts_with("step/5000,")));
        assert!(part.drawing.to_string().len() < 20 << 10);
    }
}
