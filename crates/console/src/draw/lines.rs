//! Lines of two quantiles over time, on a logarithmic scale.

use std::fmt::Write as _;

use outlive::store::BUCKETS;

use crate::html::{Markup, line};

const WIDTH: f64 = 600.0;
const HEIGHT: f64 = 120.0;

/// Upper end of the last bucket, for drawings.
const LAST: u64 = BUCKETS[BUCKETS.len() - 1] * 4;

/// Median and 95th percentile of one interval, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Quantiles {
    pub(crate) p50: u64,
    pub(crate) p95: u64,
}

impl Quantiles {
    /// Returns the quantiles of a histogram; `None` if it is empty.
    pub(crate) fn new(histogram: &[u64]) -> Option<Self> {
        Some(Self { p50: quantile(histogram, 50)?, p95: quantile(histogram, 95)? })
    }
}

/// Returns the upper bound of the bucket that contains a percentile; `None` if all are empty.
fn quantile(histogram: &[u64], percent: u64) -> Option<u64> {
    let total: u64 = histogram.iter().sum();
    let rank = (total * percent).div_ceil(100).max(1);
    let mut seen = 0;
    let at = histogram.iter().position(|count| {
        seen += count;
        seen >= rank
    })?;
    (total > 0).then(|| BUCKETS.get(at).copied().unwrap_or(LAST))
}

/// Draws a solid line for the median and a dashed one for the 95th percentile. An interval without
/// a value interrupts both. `name` is the start of the IDs in the drawing.
pub(crate) fn lines(
    name: &str,
    title: &str,
    description: &str,
    intervals: &[Option<Quantiles>],
) -> Markup {
    let values = || intervals.iter().flatten();
    let least = values().map(|it| it.p50).min().unwrap_or(1);
    let most = values().map(|it| it.p95).max().unwrap_or(1);
    let (low, high) = (log(least) - 0.2, log(most) + 0.2);
    let y = |millis: u64| HEIGHT - (log(millis) - low) / (high - low) * HEIGHT;
    let path = |value: fn(&Quantiles) -> u64| {
        let (mut path, mut is_open) = (String::new(), false);
        let step = WIDTH / intervals.len().max(1) as f64;
        for (at, interval) in intervals.iter().enumerate() {
            let Some(interval) = interval else {
                is_open = false;
                continue;
            };
            let command = if is_open { 'L' } else { 'M' };
            let (x, y) = (step * at as f64, y(value(interval)));
            // Writing to memory does not fail. The horizontal line shows an interval without neighbors.
            let _ = write!(path, "{command}{x:.1} {y:.1}h{step:.1}");
            is_open = true;
        }
        path
    };
    Markup::from_html(format!(
        "<svg class=\"drawing\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" \
         aria-labelledby=\"{name}-title {name}-desc\"><title id=\"{name}-title\">{}</title>\
         <desc id=\"{name}-desc\">{}</desc>\
         <path class=\"axis\" d=\"M0 .5H600M0 60H600M0 119.5H600\"/>\
         <path class=\"p95\" d=\"{}\"/><path class=\"p50\" d=\"{}\"/></svg>\n",
        line(title),
        line(description),
        path(|it| it.p95),
        path(|it| it.p50)
    ))
}

fn log(millis: u64) -> f64 {
    (millis.max(1) as f64).log10()
}

#[cfg(test)]
mod tests {
    use super::{LAST, Quantiles, lines, quantile};

    fn histogram(counts: &[(usize, u64)]) -> [u64; 16] {
        let mut histogram = [0; 16];
        for (at, count) in counts {
            histogram[*at] = *count;
        }
        histogram
    }

    #[test]
    fn quantile_is_the_bound_of_its_bucket() {
        let counts = histogram(&[(0, 94), (3, 5), (15, 1)]);
        assert_eq!(quantile(&counts, 50), Some(10));
        assert_eq!(quantile(&counts, 95), Some(300));
        assert_eq!(quantile(&counts, 100), Some(LAST));
        assert_eq!(quantile(&histogram(&[]), 50), None);
        assert_eq!(quantile(&histogram(&[(2, 1)]), 50), Some(100));
    }

    #[test]
    fn interval_without_values_interrupts_the_lines() {
        let some = Quantiles::new(&histogram(&[(4, 9), (8, 1)]));
        let svg = lines("wait", "Wait", "", &[some, some, None, some]).to_string();
        let (_, p50) = svg.split_once("class=\"p50\"").unwrap();
        assert_eq!((p50.matches('M').count(), p50.matches('L').count()), (2, 1), "{svg}");
        assert!(!svg.contains("NaN") && !svg.contains("style"), "{svg}");
    }

    #[test]
    fn chart_without_values_has_no_line() {
        let svg = lines("wait", "Wait", "", &[None, None]).to_string();
        assert!(svg.contains("class=\"p50\" d=\"\"") && !svg.contains("NaN"), "{svg}");
    }
}
