//! Paired slices: every target gets a short slice of load in turn, round after round.
//!
//! The machine has slow phases of seconds, and other processes run on it. Adjacent slices meet the
//! same conditions, so targets are compared within a round, and the median of the rounds is the
//! figure. Every other round reverses the order, so that no target always follows the same one.

use std::{iter, thread, time::Duration};

use anyhow::{Context, Result};
use outlive_plots::data;
use serde::Serialize;

use crate::machine::Watch;

/// Share of a core used by other processes from which a slice counts as disturbed.
const DISTURBED: f64 = 0.10;

/// With fewer quiet rounds than this, disturbed ones count too.
const ENOUGH_QUIET: usize = 10;

/// A target of load.
pub(crate) trait Target {
    fn name(&self) -> &str;
    fn pid(&self) -> u32;
    /// Applies load for `time` and returns the number of responses. Nothing is in flight
    /// afterwards.
    fn load(&mut self, time: Duration) -> Result<u64>;
    /// Helper process of the benchmark that works for the target.
    fn helper(&self) -> Option<u32> {
        None
    }
    /// Further processes of the target, whose time counts as that of the target.
    fn others(&self) -> &[u32] {
        &[]
    }
    /// Whether unknown processes work for the target, as a database does.
    fn has_helpers(&self) -> bool {
        false
    }
}

/// The result of a slice.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Slice {
    /// Processor time of the target per call, in microseconds.
    pub(crate) cpu: f64,
    /// Calls per second.
    pub(crate) rate: f64,
    /// Share of a core that other processes or the hypervisor used.
    pub(crate) foreign: f64,
}

impl Slice {
    fn is_quiet(&self) -> bool {
        self.foreign <= DISTURBED
    }
}

/// The slices of one target, one per round.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) slices: Vec<Slice>,
}

/// Gives every target one slice per round.
pub(crate) fn take(
    targets: &mut [Box<dyn Target>],
    rounds: usize,
    time: Duration,
) -> Result<Vec<Series>> {
    let mut all: Vec<Series> = targets
        .iter()
        .map(|target| Series { name: target.name().to_owned(), slices: Vec::new() })
        .collect();
    // One warm-up round: caches, page tables and branch predictors fill.
    for target in &mut *targets {
        target.load(time)?;
    }
    for round in 0..rounds {
        let mut turns: Vec<_> = targets.iter_mut().zip(&mut all).collect();
        if round % 2 == 1 {
            turns.reverse();
        }
        for (target, series) in turns {
            let slice = slice(&mut **target, time).with_context(|| series.name.clone())?;
            series.slices.push(slice);
        }
    }
    Ok(all)
}

fn slice(target: &mut dyn Target, time: Duration) -> Result<Slice> {
    let pids = iter::once(target.pid()).chain(target.others().iter().copied());
    let watch = Watch::begin(pids.collect(), target.helper())?;
    let calls = target.load(time)? as f64;
    // The threads of the server must sleep before their time is counted completely.
    thread::sleep(Duration::from_millis(2));
    let seen = watch.end()?;
    Ok(Slice {
        cpu: seen.server.as_secs_f64() * 1e6 / calls,
        rate: calls / seen.elapsed.as_secs_f64(),
        foreign: if target.has_helpers() { seen.stolen } else { seen.others + seen.stolen },
    })
}

impl Series {
    /// The quartiles of a figure over all rounds.
    pub(crate) fn spread(&self, figure: impl Fn(&Slice) -> f64) -> Spread {
        Spread::of(self.slices.iter().map(figure).collect())
    }

    /// The quartiles of the ratio to another target, over the quiet rounds if there are enough.
    pub(crate) fn ratio(&self, to: &Series, figure: impl Fn(&Slice) -> f64) -> Ratio {
        let pairs: Vec<_> = self.slices.iter().zip(&to.slices).collect();
        let quiet: Vec<_> = pairs
            .iter()
            .filter(|(ours, theirs)| ours.is_quiet() && theirs.is_quiet())
            .copied()
            .collect();
        let rounds = pairs.len();
        let disturbed = rounds - quiet.len();
        let judged = if quiet.len() >= ENOUGH_QUIET.min(rounds) { quiet } else { pairs };
        let judged_rounds = judged.len();
        let spread =
            Spread::of(judged.iter().map(|(ours, theirs)| figure(ours) / figure(theirs)).collect());
        Ratio { spread, rounds, disturbed, judged_rounds }
    }

    /// Number of disturbed slices.
    pub(crate) fn disturbed(&self) -> usize {
        self.slices.iter().filter(|slice| !slice.is_quiet()).count()
    }
}

/// Median and quartiles.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Spread {
    pub(crate) p25: f64,
    pub(crate) median: f64,
    pub(crate) p75: f64,
}

/// A ratio, and the number of rounds behind it.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Ratio {
    pub(crate) spread: Spread,
    pub(crate) rounds: usize,
    pub(crate) disturbed: usize,
    pub(crate) judged_rounds: usize,
}

impl Ratio {
    /// The ratio multiplied by a factor.
    pub(crate) fn times(mut self, factor: f64) -> Self {
        let Spread { p25, median, p75 } = &mut self.spread;
        [p25, median, p75].into_iter().for_each(|value| *value *= factor);
        self
    }
}

impl From<Spread> for data::Spread {
    fn from(Spread { p25, median, p75 }: Spread) -> Self {
        Self { p25, median, p75 }.rounded()
    }
}

impl Spread {
    pub(crate) fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let at = |quantile: f64| {
            let place = quantile * (values.len().max(1) - 1) as f64;
            let (below, share) = (place.floor() as usize, place.fract());
            let value =
                |index: usize| values.get(index).or(values.last()).copied().unwrap_or(f64::NAN);
            value(below) * (1.0 - share) + value(below + 1) * share
        };
        Self { p25: at(0.25), median: at(0.5), p75: at(0.75) }
    }
}

#[cfg(test)]
mod tests {
    use super::Spread;

    #[test]
    fn quartiles_are_interpolated_between_values() {
        let spread = Spread::of(vec![4.0, 1.0, 3.0, 2.0, 5.0]);
        assert_eq!((spread.p25, spread.median, spread.p75), (2.0, 3.0, 4.0));
        let spread = Spread::of(vec![1.0, 2.0]);
        assert_eq!((spread.p25, spread.median, spread.p75), (1.25, 1.5, 1.75));
        assert_eq!(Spread::of(vec![7.0]).median, 7.0);
    }
}
