//! The plot of the memory per session and stream.

use crate::{
    data::{Kind, StreamMemory},
    drawing::{Anchor, Drawing, Stroke, WIDTH, shown, whole},
    scale::Scale,
};

const ROW: f64 = 46.0;
const BAR: f64 = 22.0;
const TOP: f64 = 78.0;
const LEFT: f64 = 330.0;
const RIGHT: f64 = WIDTH - 40.0;

pub(crate) fn draw(rows: &[StreamMemory]) -> String {
    let max = rows.iter().map(|row| row.kib.max(row.max_kib)).fold(0.0, f64::max);
    let bottom = TOP + ROW * rows.len() as f64;
    let scale = Scale::linear(max, [LEFT, RIGHT]);
    let mut drawing = Drawing::new(
        bottom + 56.0,
        "Memory per session and stream",
        "Growth of the server's resident memory, with events on the streams. Less is better.",
        &alternative(rows),
    );
    drawing.horizontal_axis(&scale, [TOP, bottom], "KiB for each open session or stream");
    for (at, row) in rows.iter().enumerate() {
        let y = TOP + ROW * (at as f64 + 0.5);
        drawing.text(LEFT - 14.0, y + 5.0, Anchor::End, &row.name);
        drawing.bar([LEFT, y - BAR / 2.0], scale.at(row.kib) - LEFT, BAR, Kind::Outlive);
        let limit = scale.at(row.max_kib);
        drawing.line([limit, y - ROW / 2.0 + 4.0], [limit, y + ROW / 2.0 - 4.0], Stroke::Marker);
        let value = shown(row.kib);
        // The value stands after the bar, and after the threshold if that is close.
        let end = scale.at(row.kib);
        let close = (end - 4.0..end + 60.0).contains(&limit);
        let x = if close { limit } else { end } + 8.0;
        drawing.bold(x, y + 5.0, Anchor::Start, &value);
        let threshold = format!("at most {}", whole(row.max_kib));
        match close {
            true => drawing.quiet(x + 40.0, y + 5.0, Anchor::Start, &threshold),
            false => drawing.quiet(limit - 8.0, y + 5.0, Anchor::End, &threshold),
        }
    }
    drawing.finish()
}

fn alternative(rows: &[StreamMemory]) -> String {
    let rows: Vec<String> = rows
        .iter()
        .map(|row| format!("{} {}, threshold {}", row.name, shown(row.kib), whole(row.max_kib)))
        .collect();
    format!("KiB of memory for each: {}.", rows.join("; "))
}
