//! The plot of takeover times: one dot per kill, in columns.

use std::collections::BTreeMap;

use crate::{
    data::Takeover,
    drawing::{Anchor, Drawing, Stroke, WIDTH, whole},
    scale::Scale,
};

const TOP: f64 = 78.0;
const LEFT: f64 = 130.0;
const RIGHT: f64 = WIDTH - 40.0;
const RADIUS: f64 = 3.5;
/// Width of a column of dots.
const COLUMN: f64 = 2.0 * RADIUS + 1.0;
/// Space above the dots for the labels of percentiles.
const HEAD: f64 = 40.0;

pub(crate) fn draw(stores: &[Takeover]) -> String {
    let max = stores.iter().flat_map(|store| &store.stopped_ms).copied().max().unwrap_or(1);
    let scale = Scale::linear(max.max(1) as f64, [LEFT, RIGHT]);
    let columns: Vec<BTreeMap<u64, usize>> =
        stores.iter().map(|store| counted(store, &scale)).collect();
    let heights: Vec<f64> = columns.iter().map(height).collect();
    let bottom = TOP + heights.iter().sum::<f64>();
    let mut drawing = Drawing::new(
        bottom + 56.0,
        "Takeover of a task when its server is killed",
        &subtitle(stores),
        &alternative(stores),
    );
    drawing.horizontal_axis(
        &scale,
        [TOP, bottom],
        "ms from the kill to the next step on another server",
    );
    let mut floor = TOP;
    for ((store, columns), height) in stores.iter().zip(&columns).zip(&heights) {
        floor += height;
        strip(&mut drawing, &scale, store, columns, [floor - height, floor]);
    }
    drawing.finish()
}

/// Draws the dots of a store from the floor up, and its percentiles.
fn strip(
    drawing: &mut Drawing,
    scale: &Scale,
    store: &Takeover,
    columns: &BTreeMap<u64, usize>,
    [top, floor]: [f64; 2],
) {
    drawing.bold(24.0, floor - 24.0, Anchor::Start, &store.store);
    drawing.quiet(24.0, floor - 7.0, Anchor::Start, &format!("{} kills", store.stopped_ms.len()));
    drawing.line([24.0, floor], [RIGHT, floor], Stroke::Grid);
    for (&column, &count) in columns {
        let x = LEFT + (column as f64 + 0.5) * COLUMN;
        for dot in 0..count {
            drawing.dot(x, floor - COLUMN * (dot as f64 + 0.5), RADIUS);
        }
    }
    let mut used = 0.0;
    for (name, percent) in [("p50", 50), ("p99", 99)] {
        let Some(value) = percentile(&store.stopped_ms, percent) else { continue };
        let x = scale.at(value as f64);
        drawing.line([x, top + HEAD - 12.0], [x, floor], Stroke::Marker);
        // Two close percentiles have their labels one above the other.
        let y = if x - used < 90.0 { top + 14.0 } else { top + 26.0 };
        let anchor = if x > RIGHT - 40.0 { Anchor::End } else { Anchor::Middle };
        drawing.text(x, y, anchor, &format!("{name} {} ms", whole(value as f64)));
        used = x;
    }
}

/// Counts the kills of each column.
fn counted(store: &Takeover, scale: &Scale) -> BTreeMap<u64, usize> {
    let mut columns = BTreeMap::new();
    for &value in &store.stopped_ms {
        let column = ((scale.at(value as f64) - LEFT) / COLUMN) as u64;
        *columns.entry(column).or_default() += 1;
    }
    columns
}

/// The height of a strip: its highest column, and the labels above it.
fn height(columns: &BTreeMap<u64, usize>) -> f64 {
    let dots = columns.values().copied().max().unwrap_or(0);
    HEAD + (COLUMN * dots as f64).max(40.0)
}

/// Returns a percentile of sorted values.
fn percentile(sorted: &[u64], percent: usize) -> Option<u64> {
    let last = sorted.len().checked_sub(1)?;
    sorted.get((last * percent).div_ceil(100)).copied()
}

fn subtitle(stores: &[Takeover]) -> String {
    let Some(first) = stores.first() else { return "No kills.".to_owned() };
    format!(
        "Each dot is one kill. {} servers, leases of {} ms. Threshold of p99: {} ms.",
        first.replicas,
        whole(first.lease_ms as f64),
        whole(first.max_p99_ms as f64)
    )
}

fn alternative(stores: &[Takeover]) -> String {
    let of = |store: &Takeover| {
        let at = |percent| {
            let value = percentile(&store.stopped_ms, percent);
            value.map_or_else(|| "none".to_owned(), |value| whole(value as f64))
        };
        let kills = store.stopped_ms.len();
        format!(
            "{}: {kills} kills, p50 {}, p99 {}, longest {}",
            store.store,
            at(50),
            at(99),
            at(100)
        )
    };
    let stores: Vec<String> = stores.iter().map(of).collect();
    format!(
        "Milliseconds from the kill of a worker to the next step of its task in another process. {}.",
        stores.join("; ")
    )
}

#[cfg(test)]
mod tests {
    use super::{counted, draw, percentile};
    use crate::{data::Takeover, scale::Scale};

    fn store(stopped_ms: Vec<u64>) -> Takeover {
        let store = "SQLite".to_owned();
        Takeover { store, replicas: 3, lease_ms: 2_000, max_p99_ms: 2_000, stopped_ms }
    }

    #[test]
    fn every_kill_is_one_dot() {
        let store = store((0..100).map(|number| number * 7).collect());
        assert_eq!(draw(std::slice::from_ref(&store)).matches("<circle").count(), 100);
        let columns = counted(&store, &Scale::linear(700.0, [130.0, 720.0]));
        assert_eq!(columns.values().sum::<usize>(), 100);
    }

    #[test]
    fn percentiles_are_measured_values() {
        let sorted: Vec<u64> = (1..=100).collect();
        assert_eq!(
            [50, 99, 100].map(|at| percentile(&sorted, at)),
            [Some(51), Some(100), Some(100)]
        );
        assert_eq!(percentile(&[], 50), None);
    }

    #[test]
    fn plot_without_kills_says_so() {
        assert!(draw(&[]).contains("No kills."));
        assert!(draw(&[store(Vec::new())]).contains("0 kills"));
    }
}
