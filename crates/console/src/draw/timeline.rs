//! The timeline of a task: lanes of bars on one axis.

use std::fmt::Write as _;

use outlive::store::UnixMillis;

use crate::{
    html::{Markup, line},
    time_text,
};

/// Width of the lanes, to the right of their labels.
const WIDTH: f64 = 900.0;

/// Left end of the lanes.
const LEFT: f64 = 92.0;

/// Number of columns that times are mapped to.
const COLUMNS: usize = 400;

/// Width of a folded idle span.
const FOLD_WIDTH: f64 = 72.0;

/// Minimum width of a bar.
const MIN_WIDTH: f64 = 3.0;

/// Number of bars above which a lane is one path.
const MAX_BARS: usize = 100;

const TOP: f64 = 24.0;
const LANE_HEIGHT: f64 = 28.0;
const BAR_HEIGHT: f64 = 16.0;

/// A row of the timeline.
pub(crate) struct Lane {
    pub(crate) label: &'static str,
    pub(crate) bars: Vec<Bar>,
}

/// A time span in a lane.
#[derive(Clone, Debug)]
pub(crate) struct Bar {
    pub(crate) from: UnixMillis,
    pub(crate) to: UnixMillis,
    /// Name, duration and result.
    pub(crate) name: String,
    /// Address of the journal entry.
    pub(crate) href: Option<String>,
    pub(crate) mark: Mark,
}

/// Kind of a bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// A worker had the task.
    Worker,
    /// A worker had the task and lost its lease.
    LostWorker,
    Step,
    FailedStep,
    /// An input request with a response.
    Input,
    /// An input request without a response.
    OpenInput,
    Timer,
}

impl Mark {
    fn class(self) -> &'static str {
        match self {
            Self::Worker | Self::LostWorker => "worker",
            Self::Step => "step",
            Self::FailedStep => "failed",
            Self::Input | Self::OpenInput => "input",
            Self::Timer => "timer",
        }
    }

    /// Returns whether the task worked during the span of the bar.
    fn is_work(self) -> bool {
        !matches!(self, Self::Input | Self::OpenInput | Self::Timer)
    }
}

/// Draws lanes. Returns nothing if no lane has a bar.
pub(crate) fn timeline(lanes: &[Lane], description: &str) -> Option<Markup> {
    let axis = Axis::new(lanes)?;
    let height = TOP + LANE_HEIGHT * lanes.len() as f64;
    let has_links = lanes.iter().any(|lane| lane.has_links());
    // Links in an image are not accessible, and a group without links needs no navigation.
    let role = if has_links { "group" } else { "img" };
    let mut svg = format!(
        "<svg class=\"drawing\" viewBox=\"0 0 {} {height}\" role=\"{role}\" \
         aria-labelledby=\"timeline-title timeline-desc\">\
         <title id=\"timeline-title\">Timeline</title>\
         <desc id=\"timeline-desc\">{}</desc>\
         <defs><pattern id=\"hatch-timeline\" width=\"6\" height=\"6\" \
         patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">\
         <path class=\"hatch\" d=\"M0 0V6\"/></pattern></defs>\n",
        LEFT + WIDTH + 8.0,
        line(description)
    );
    axis.draw_folds(&mut svg, height);
    for (at, lane) in lanes.iter().enumerate() {
        lane.draw(&mut svg, &axis, TOP + LANE_HEIGHT * at as f64);
    }
    svg.push_str("</svg>\n");
    Some(Markup::from_html(svg))
}

impl Lane {
    fn has_links(&self) -> bool {
        self.bars.len() <= MAX_BARS && self.bars.iter().any(|bar| bar.href.is_some())
    }

    fn draw(&self, svg: &mut String, axis: &Axis, top: f64) {
        let middle = top + LANE_HEIGHT / 2.0;
        // Writing to memory does not fail.
        let _ = writeln!(
            svg,
            "<text x=\"0\" y=\"{}\">{}</text><path class=\"axis\" d=\"M{LEFT} {middle}h{WIDTH}\"/>",
            middle + 4.5,
            self.label
        );
        if self.bars.len() > MAX_BARS {
            self.draw_path(svg, axis, top, false);
            self.draw_path(svg, axis, top, true);
            return;
        }
        for bar in &self.bars {
            bar.draw(svg, axis, top);
        }
    }

    /// Draws the columns of all bars that did or did not fail as one path.
    fn draw_path(&self, svg: &mut String, axis: &Axis, top: f64, failed: bool) {
        let mut columns = vec![false; COLUMNS + 1];
        let bars = self.bars.iter().filter(|bar| (bar.mark == Mark::FailedStep) == failed);
        let mut class = None;
        for bar in bars {
            let (from, to) = (axis.column(bar.from), axis.column(bar.to));
            columns[from..=to].fill(true);
            class = Some(bar.mark.class());
        }
        let Some(class) = class else { return };
        let fill = if failed { " fill=\"url(#hatch-timeline)\"" } else { "" };
        let (y, step) = (top + (LANE_HEIGHT - BAR_HEIGHT) / 2.0, WIDTH / COLUMNS as f64);
        let _ = write!(svg, "<path class=\"{class}\"{fill} d=\"");
        let mut at = 0;
        while at < columns.len() {
            let run = columns[at..].iter().take_while(|is_filled| **is_filled).count();
            if run > 0 {
                let (x, width) = (LEFT + step * at as f64, (step * run as f64).max(MIN_WIDTH));
                let _ = write!(svg, "M{x:.1} {y}h{width:.1}v{BAR_HEIGHT}h-{width:.1}z");
            }
            at += run.max(1);
        }
        svg.push_str("\"/>\n");
    }
}

impl Bar {
    fn draw(&self, svg: &mut String, axis: &Axis, top: f64) {
        let (from, to) = (axis.x(self.from), axis.x(self.to));
        let (name, middle) = (line(&self.name), top + LANE_HEIGHT / 2.0);
        let (open, close) = match &self.href {
            Some(href) => {
                let href = line(href);
                (format!("<a href=\"{href}\" tabindex=\"-1\" aria-label=\"{name}\">"), "</a>")
            }
            None => ("<g>".to_owned(), "</g>"),
        };
        let _ = write!(svg, "{open}<title>{name}</title>");
        let class = self.mark.class();
        let thin = !self.mark.is_work();
        let bar_height = if thin { 4.0 } else { BAR_HEIGHT };
        let fill = match self.mark {
            Mark::FailedStep => " fill=\"url(#hatch-timeline)\"",
            _ => "",
        };
        let _ = write!(
            svg,
            "<rect class=\"{class}\"{fill} x=\"{from:.1}\" y=\"{}\" width=\"{:.1}\" height=\"{bar_height}\"/>",
            middle - bar_height / 2.0,
            (to - from).max(MIN_WIDTH)
        );
        match self.mark {
            Mark::Input => {
                diamond(svg, from, middle);
                diamond(svg, to, middle);
            }
            Mark::OpenInput => diamond(svg, from, middle),
            Mark::LostWorker => {
                let (x, y) = (to - 5.0, middle - 5.0);
                let _ = write!(svg, "<path class=\"lost\" d=\"M{x:.1} {y}l10 10m0 -10l-10 10\"/>");
            }
            _ => {}
        }
        let _ = writeln!(svg, "{close}");
    }
}

fn diamond(svg: &mut String, x: f64, middle: f64) {
    let (left, size) = (x - 7.0, 7);
    // Writing to memory does not fail.
    let _ = write!(
        svg,
        "<path class=\"input\" d=\"M{left:.1} {middle}l{size} -{size}l{size} {size}l-{size} {size}z\"/>"
    );
}

/// Maps times to positions. Long idle spans are folded.
struct Axis {
    pieces: Vec<Piece>,
}

/// A part of the axis in which time is proportional to width.
struct Piece {
    from: UnixMillis,
    to: UnixMillis,
    left: f64,
    width: f64,
    is_fold: bool,
}

impl Axis {
    /// Creates the axis of all bars. Returns nothing if no lane has a bar.
    fn new(lanes: &[Lane]) -> Option<Self> {
        let bars = || lanes.iter().flat_map(|lane| &lane.bars);
        let from = bars().map(|bar| bar.from).min()?;
        let to = bars().map(|bar| bar.to).max()?.max(from);
        let folds = folds(bars(), from, to);
        let folded: u64 = folds.iter().map(|(from, to)| to - from).sum();
        let unfolded = (to - from - folded).max(1) as f64;
        let scale = (WIDTH - FOLD_WIDTH * folds.len() as f64) / unfolded;
        let (mut pieces, mut at, mut left) = (Vec::new(), from, 0.0);
        for (start, end) in folds {
            let width = (start - at) as f64 * scale;
            pieces.push(Piece { from: at, to: start, left, width, is_fold: false });
            left += width;
            pieces.push(Piece { from: start, to: end, left, width: FOLD_WIDTH, is_fold: true });
            (at, left) = (end, left + FOLD_WIDTH);
        }
        let width = (to - at) as f64 * scale;
        pieces.push(Piece { from: at, to, left, width, is_fold: false });
        Some(Self { pieces })
    }

    /// Returns the position of a time, from 0 to [`WIDTH`].
    fn position(&self, at: UnixMillis) -> f64 {
        let Some(piece) = self.pieces.iter().find(|piece| at <= piece.to) else { return WIDTH };
        let share = match piece.to - piece.from {
            0 => 0.0,
            span => at.saturating_sub(piece.from) as f64 / span as f64,
        };
        piece.left + piece.width * share
    }

    fn x(&self, at: UnixMillis) -> f64 {
        LEFT + self.position(at)
    }

    /// Returns the column of a time.
    fn column(&self, at: UnixMillis) -> usize {
        ((self.position(at) / WIDTH * COLUMNS as f64) as usize).min(COLUMNS)
    }

    fn draw_folds(&self, svg: &mut String, height: f64) {
        for fold in self.pieces.iter().filter(|piece| piece.is_fold) {
            let (from, middle) = (LEFT + fold.left, LEFT + fold.left + fold.width / 2.0);
            let span = time_text::span(fold.to - fold.from);
            // Writing to memory does not fail.
            let _ = writeln!(
                svg,
                "<path class=\"fold\" d=\"M{from:.1} {TOP}V{height}M{:.1} {TOP}V{height}\"/>\
                 <text x=\"{middle:.1}\" y=\"15\" text-anchor=\"middle\">{span} idle</text>",
                from + fold.width
            );
        }
    }
}

/// Returns the spans without work and without an event that are longer than a fifth of the total.
fn folds<'a>(
    bars: impl Iterator<Item = &'a Bar>,
    from: UnixMillis,
    to: UnixMillis,
) -> Vec<(UnixMillis, UnixMillis)> {
    let mut busy = vec![(from, from), (to, to)];
    for bar in bars {
        match bar.mark.is_work() {
            true => busy.push((bar.from, bar.to)),
            false => busy.extend([(bar.from, bar.from), (bar.to, bar.to)]),
        }
    }
    busy.sort_unstable();
    let least = (to - from) / 5;
    let (mut folds, mut end) = (Vec::new(), from);
    for (start, stop) in busy {
        if start > end && start - end > least {
            folds.push((end, start));
        }
        end = end.max(stop);
    }
    folds
}

#[cfg(test)]
mod tests {
    use super::{Axis, Bar, LEFT, Lane, MAX_BARS, Mark, WIDTH, timeline};

    fn bar(from: u64, to: u64, mark: Mark) -> Bar {
        let name = format!("push/<eu>, {} ms, done", to - from);
        Bar { from, to, name, href: Some(format!("?key=push&at={from}")), mark }
    }

    fn lane(bars: Vec<Bar>) -> Lane {
        Lane { label: "steps", bars }
    }

    #[test]
    fn task_without_bars_has_no_timeline() {
        assert_eq!(timeline(&[lane(Vec::new())], ""), None);
    }

    #[test]
    fn bar_has_a_name_and_a_link() {
        let svg = timeline(&[lane(vec![bar(5, 9, Mark::Step)])], "1 step").unwrap().to_string();
        assert!(svg.contains("<title>push/&lt;eu&gt;, 4 ms, done</title>"), "{svg}");
        assert!(
            svg.contains("href=\"?key=push&amp;at=5\"") && svg.contains("role=\"group\""),
            "{svg}"
        );
        assert!(svg.contains("<desc id=\"timeline-desc\">1 step</desc>") && !svg.contains("style"));
    }

    #[test]
    fn bars_of_one_moment_are_visible() {
        let svg = timeline(&[lane(vec![bar(5, 5, Mark::Step)])], "").unwrap().to_string();
        assert!(
            svg.contains("width=\"3.0\"") && !svg.contains("NaN") && !svg.contains("inf"),
            "{svg}"
        );
    }

    #[test]
    fn lane_with_many_bars_is_one_path_for_each_result() {
        let bars = (0..=MAX_BARS as u64 * 2).map(|at| {
            bar(at * 10, at * 10 + 9, if at == 7 { Mark::FailedStep } else { Mark::Step })
        });
        let svg = timeline(&[lane(bars.collect())], "").unwrap().to_string();
        assert!(!svg.contains("<a ") && svg.contains("role=\"img\""), "{svg}");
        assert_eq!(svg.matches("<path class=\"step\"").count(), 1);
        assert_eq!(svg.matches("<path class=\"failed\"").count(), 1);
        assert!(svg.len() < 20 << 10, "{}", svg.len());
    }

    #[test]
    fn long_idle_span_is_folded_with_its_length() {
        let hour = 3_600_000;
        let lanes = [
            lane(vec![bar(0, 1_000, Mark::Step), bar(2 * hour, 2 * hour + 1_000, Mark::Step)]),
            lane(vec![bar(1_000, 2 * hour, Mark::Input)]),
        ];
        let svg = timeline(&lanes, "").unwrap().to_string();
        assert!(svg.contains(">1 h idle</text>"), "{svg}");
        let axis = Axis::new(&lanes).unwrap();
        assert!(axis.position(1_000) > WIDTH / 3.0, "the first step is wide");
        assert!(
            (axis.x(2 * hour + 1_000) - LEFT - WIDTH).abs() < 0.1,
            "the axis ends with the last bar"
        );
    }

    #[test]
    fn positions_grow_with_time() {
        let lanes =
            [lane((0..50).map(|at| bar(at * at * 100, at * at * 100 + 30, Mark::Step)).collect())];
        let axis = Axis::new(&lanes).unwrap();
        let positions: Vec<f64> = (0..250_000).step_by(500).map(|at| axis.position(at)).collect();
        assert!(positions.is_sorted(), "{positions:?}");
    }
}
