//! Axes: from values to pixels, and their ticks.

/// An axis of a plot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    values: [f64; 2],
    pixels: [f64; 2],
    kind: ScaleKind,
}

#[derive(Clone, Copy, Debug)]
enum ScaleKind {
    Linear,
    Log,
}

impl Scale {
    /// Returns a linear axis from zero to at least `max`, with round ends.
    pub(crate) fn linear(max: f64, pixels: [f64; 2]) -> Self {
        let step = step(max);
        Self { values: [0.0, (max / step).ceil() * step], pixels, kind: ScaleKind::Linear }
    }

    /// Returns a logarithmic axis that contains both positive values; its ends are 1, 2 or 5 times a
    /// power of ten.
    pub(crate) fn log(min: f64, max: f64, pixels: [f64; 2]) -> Self {
        Self { values: [round_below(min), round_above(max)], pixels, kind: ScaleKind::Log }
    }

    /// Returns the pixel of a value.
    pub(crate) fn at(&self, value: f64) -> f64 {
        let [from, to] = self.values;
        let share = match self.kind {
            ScaleKind::Linear => (value - from) / (to - from),
            ScaleKind::Log => (value / from).ln() / (to / from).ln(),
        };
        let [start, end] = self.pixels;
        start + share * (end - start)
    }

    /// Returns the pixel in the middle of the axis.
    pub(crate) fn middle(&self) -> f64 {
        let [start, end] = self.pixels;
        (start + end) / 2.0
    }

    /// Returns the labeled values: at most seven of a linear axis, and the powers of ten of a
    /// logarithmic one.
    pub(crate) fn ticks(&self) -> Vec<f64> {
        let [from, to] = self.values;
        match self.kind {
            ScaleKind::Linear => {
                let step = step(to);
                (0..=(to / step).round() as u32).map(|tick| f64::from(tick) * step).collect()
            }
            ScaleKind::Log => (exponent(from)..=exponent(to))
                .map(|exponent| 10f64.powi(exponent))
                .filter(|tick| (from..=to).contains(tick))
                .collect(),
        }
    }
}

/// Returns the distance of ticks: the least of 1, 2 or 5 times a power of ten with at most seven ticks.
fn step(max: f64) -> f64 {
    round_above(max / 6.0)
}

/// The exponent of the power of ten at or below a value.
fn exponent(value: f64) -> i32 {
    // A power of ten may be slightly below its own logarithm.
    (value.log10() + 1e-9).floor() as i32
}

fn round_below(value: f64) -> f64 {
    let power = 10f64.powi(exponent(value));
    let factor = [5.0, 2.0].into_iter().find(|factor| power * factor <= value).unwrap_or(1.0);
    power * factor
}

fn round_above(value: f64) -> f64 {
    let below = round_below(value);
    if below >= value {
        return below;
    }
    let power = 10f64.powi(exponent(value));
    let factor = [2.0, 5.0].into_iter().find(|factor| power * factor >= value).unwrap_or(10.0);
    power * factor
}

/// Moves sorted positions apart to at least `gap`, and keeps their center.
pub(crate) fn spread_apart(positions: &[f64], gap: f64) -> Vec<f64> {
    let mut moved: Vec<f64> = positions.to_vec();
    // Each pass moves close neighbors apart by the same distance; a few passes suffice for a plot.
    for _ in 0..100 {
        for at in 1..moved.len() {
            let missing = gap - (moved[at] - moved[at - 1]);
            if missing > 0.01 {
                moved[at - 1] -= missing / 2.0;
                moved[at] += missing / 2.0;
            }
        }
    }
    moved
}

#[cfg(test)]
mod tests {
    use super::{Scale, spread_apart};

    #[test]
    fn linear_axis_has_round_end_and_few_ticks() {
        let scale = Scale::linear(5.7, [100.0, 700.0]);
        assert_eq!(scale.ticks(), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        assert_eq!(scale.at(3.0), 400.0);
        assert_eq!(Scale::linear(430.0, [0.0, 1.0]).ticks().last(), Some(&500.0));
    }

    #[test]
    fn log_axis_labels_powers_of_ten() {
        let scale = Scale::log(16.2, 3_742.0, [0.0, 100.0]);
        assert_eq!(scale.ticks(), [10.0, 100.0, 1_000.0]);
        assert_eq!((scale.at(10.0), scale.at(5_000.0)), (0.0, 100.0));
        let exact = Scale::log(1_000.0, 1_000_000.0, [0.0, 3.0]);
        assert_eq!(exact.ticks(), [1e3, 1e4, 1e5, 1e6]);
        assert!((exact.at(1e4) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn close_labels_are_moved_apart() {
        assert_eq!(spread_apart(&[10.0, 40.0], 16.0), [10.0, 40.0]);
        let moved = spread_apart(&[10.0, 12.0, 60.0], 16.0);
        assert!((moved[0] - 3.0).abs() < 0.1 && (moved[1] - 19.0).abs() < 0.1, "{moved:?}");
    }
}
