//! The plot of task lifecycles per second as stored tasks grow.

use crate::{
    data::{Kind, TaskRate},
    drawing::{Anchor, Drawing, Stroke, WIDTH, shown, whole},
    scale::{Scale, spread_apart},
};

const TOP: f64 = 84.0;
const BOTTOM: f64 = 400.0;
const LEFT: f64 = 92.0;
const RIGHT: f64 = WIDTH - 225.0;
/// Least distance of two labels.
const GAP: f64 = 17.0;

/// The rates of one target, by stored tasks.
struct Line<'a> {
    target: &'a str,
    kind: Kind,
    first: &'a TaskRate,
    last: &'a TaskRate,
    points: Vec<&'a TaskRate>,
}

pub(crate) fn draw(rows: &[TaskRate]) -> String {
    let lines = lines(rows);
    let stored = || rows.iter().map(|row| row.stored as f64);
    // Half of the least number leaves space for the labels at the start of lines.
    let least = stored().fold(f64::INFINITY, f64::min) / 2.0;
    let x = Scale::log(least, stored().fold(1.0, f64::max), [LEFT, RIGHT]);
    let rates = || rows.iter().map(|row| row.per_second);
    let (slowest, fastest) = (rates().fold(f64::INFINITY, f64::min), rates().fold(1.0, f64::max));
    let y = Scale::log(slowest, fastest, [BOTTOM, TOP]);
    let mut drawing = Drawing::new(
        BOTTOM + 56.0,
        "Tasks per second as stored tasks grow",
        "Lifecycles over HTTP: created, polled until completed, read. More is better.",
        &alternative(&lines),
    );
    drawing.horizontal_axis(&x, [TOP, BOTTOM], "stored tasks, logarithmic");
    for tick in y.ticks() {
        let at = y.at(tick);
        drawing.line([LEFT, at], [RIGHT, at], Stroke::Grid);
        drawing.quiet(LEFT - 10.0, at + 5.0, Anchor::End, &whole(tick));
    }
    drawing.vertical(28.0, (TOP + BOTTOM) / 2.0, "lifecycles per second, logarithmic");
    for line in &lines {
        for pair in line.points.windows(2) {
            let [from, to] = [pair[0], pair[1]].map(|row| point(&x, &y, row));
            drawing.line(from, to, Stroke::Target(line.kind));
        }
    }
    for line in &lines {
        for row in &line.points {
            let [x, y] = point(&x, &y, row);
            drawing.mark(x, y, line.kind);
        }
    }
    let start = |line: &Line<'_>| (point(&x, &y, line.first), shown(line.first.per_second));
    label(&mut drawing, lines.iter().map(start).collect(), Anchor::End);
    let end = |line: &Line<'_>| {
        let text = format!("{} {}", line.target, shown(line.last.per_second));
        (point(&x, &y, line.last), text)
    };
    label(&mut drawing, lines.iter().map(end).collect(), Anchor::Start);
    drawing.finish()
}

fn point(x: &Scale, y: &Scale, row: &TaskRate) -> [f64; 2] {
    [x.at(row.stored as f64), y.at(row.per_second)]
}

/// Writes labels beside their points; labels of the same column are moved apart.
fn label(drawing: &mut Drawing, mut labels: Vec<([f64; 2], String)>, anchor: Anchor) {
    let by_place = |[x, y]: &[f64; 2], [u, v]: &[f64; 2]| x.total_cmp(u).then(y.total_cmp(v));
    labels.sort_by(|(one, _), (other, _)| by_place(one, other));
    let side = if matches!(anchor, Anchor::End) { -11.0 } else { 11.0 };
    for column in labels.chunk_by(|([x, _], _), ([u, _], _)| (x - u).abs() < 1.0) {
        let rows: Vec<f64> = column.iter().map(|([_, y], _)| *y).collect();
        for (([x, _], text), y) in column.iter().zip(spread_apart(&rows, GAP)) {
            drawing.text(x + side, y + 5.0, anchor, text);
        }
    }
}

/// Groups the rows by target, in the order of the file.
fn lines(rows: &[TaskRate]) -> Vec<Line<'_>> {
    let mut lines: Vec<Line<'_>> = Vec::new();
    for row in rows {
        match lines.iter_mut().find(|line| line.target == row.target) {
            Some(line) => line.points.push(row),
            None => lines.push(Line {
                target: &row.target,
                kind: row.kind,
                first: row,
                last: row,
                points: vec![row],
            }),
        }
    }
    for line in &mut lines {
        line.points.sort_by_key(|row| row.stored);
        if let (Some(first), Some(last)) = (line.points.first(), line.points.last()) {
            (line.first, line.last) = (first, last);
        }
    }
    lines
}

fn alternative(lines: &[Line<'_>]) -> String {
    let at = |row: &TaskRate| {
        format!("{} at {} stored", shown(row.per_second), whole(row.stored as f64))
    };
    let lines: Vec<String> = lines
        .iter()
        .map(|line| {
            let points: Vec<String> = line.points.iter().map(|row| at(row)).collect();
            format!("{}: {}", line.target, points.join(", "))
        })
        .collect();
    format!("Task lifecycles per second. {}.", lines.join("; "))
}

#[cfg(test)]
mod tests {
    use super::{draw, lines};
    use crate::data::{Kind, TaskRate};

    fn row(target: &str, stored: u64, per_second: f64) -> TaskRate {
        TaskRate { target: target.to_owned(), kind: Kind::Outlive, stored, per_second }
    }

    #[test]
    fn rows_of_a_target_are_one_line_by_stored_tasks() {
        let rows = [row("a", 1_000_000, 3.0), row("b", 10, 1.0), row("a", 1_000, 4.0)];
        let lines = lines(&rows);
        let ends: Vec<_> = lines.iter().map(|line| (line.first.stored, line.last.stored)).collect();
        assert_eq!(ends, [(1_000, 1_000_000), (10, 10)]);
    }

    #[test]
    fn text_alternative_has_every_point() {
        let plot = draw(&[row("a", 1_000, 12_748.0), row("a", 1_000_000, 13_183.0)]);
        assert!(plot.contains("a: 12,748 at 1,000 stored, 13,183 at 1,000,000 stored."), "{plot}");
    }
}
