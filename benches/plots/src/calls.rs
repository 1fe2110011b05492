//! The plot of the CPU time per call, beside peers.

use crate::{
    data::{CallCost, Spread},
    drawing::{Anchor, Drawing, WIDTH, shown},
    scale::Scale,
};

const ROW: f64 = 27.0;
const TOP: f64 = 78.0;
/// The axis starts here; the names of targets end before it.
const LEFT: f64 = 330.0;
const RIGHT: f64 = WIDTH - 40.0;

pub(crate) fn draw(rows: &[CallCost]) -> String {
    let mut rows: Vec<&CallCost> = rows.iter().collect();
    rows.sort_by(|one, other| one.cpu_us.median.total_cmp(&other.cpu_us.median));
    let (min, max) = bounds(rows.iter().map(|row| &row.cpu_us));
    let bottom = TOP + ROW * rows.len() as f64;
    let scale = Scale::log(min, max, [LEFT, RIGHT]);
    let mut drawing = Drawing::new(
        bottom + 56.0,
        "CPU time per call",
        "tools/call over HTTP, 2026-07-28. Median, and quartiles as a band. Less is better.",
        &alternative(&rows),
    );
    drawing.horizontal_axis(&scale, [TOP, bottom], "µs of CPU per call, logarithmic");
    for (at, row) in rows.iter().enumerate() {
        let y = TOP + ROW * (at as f64 + 0.5);
        let [p25, median, p75] =
            [row.cpu_us.p25, row.cpu_us.median, row.cpu_us.p75].map(|value| scale.at(value));
        drawing.text(LEFT - 14.0, y + 5.0, Anchor::End, &row.target);
        drawing.range(p25, p75, y, row.kind);
        drawing.mark(median, y, row.kind);
        let value = shown(row.cpu_us.median);
        // A label at the right end would leave the plot.
        match p75.max(median) + 50.0 < WIDTH - 10.0 {
            true => drawing.bold(p75.max(median) + 12.0, y + 5.0, Anchor::Start, &value),
            false => drawing.bold(p25.min(median) - 12.0, y + 5.0, Anchor::End, &value),
        }
    }
    drawing.finish()
}

/// The least lower quartile and the greatest upper one.
pub(crate) fn bounds<'a>(spreads: impl Iterator<Item = &'a Spread>) -> (f64, f64) {
    spreads.fold((f64::INFINITY, f64::NEG_INFINITY), |(min, max), spread| {
        (min.min(spread.p25), max.max(spread.p75))
    })
}

fn alternative(rows: &[&CallCost]) -> String {
    let rows: Vec<String> =
        rows.iter().map(|row| format!("{} {}", row.target, shown(row.cpu_us.median))).collect();
    format!("Microseconds of CPU time per call, median, in ascending order: {}.", rows.join("; "))
}
