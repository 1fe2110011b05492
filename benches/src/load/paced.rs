//! Calls at a fixed rate, and their latencies.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use rustix::event::epoll;

use super::http::{Load, PATIENCE};

impl Load {
    /// Calls at a fixed rate for `time`, however long responses take, and returns the latencies.
    ///
    /// A latency counts from the time at which the call is due, so that a slow response cannot hide
    /// the calls that wait for its connection.
    pub(crate) fn pace(&mut self, per_second: u32, time: Duration) -> Result<Vec<Duration>> {
        let total = (time.as_secs_f64() * f64::from(per_second)) as usize;
        let interval = Duration::from_secs(1) / per_second;
        let started = Instant::now();
        let due = |call: usize| started + interval * call as u32;
        let mut free: VecDeque<usize> = (0..self.connections.len()).collect();
        let mut due_at = vec![started; free.len()];
        let (mut latencies, mut called) = (Vec::with_capacity(total), 0);
        while latencies.len() < total {
            while called < total && due(called) <= Instant::now() {
                let Some(index) = free.pop_front() else { break };
                due_at[index] = due(called);
                self.begin(index)?;
                called += 1;
            }
            self.ready.clear();
            // Without a pause: the generator has a separate core, and to wake up takes longer
            // than a call.
            let now = Duration::ZERO.try_into()?;
            epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut self.ready), Some(&now))?;
            for place in 0..self.ready.len() {
                let index = self.ready[place].data.u64() as usize;
                if self.go_on(index)? {
                    latencies.push(due_at[index].elapsed());
                    free.push_back(index);
                }
            }
            let waiting = total - latencies.len();
            let is_late = started.elapsed() > time + PATIENCE;
            ensure!(!is_late, "{waiting} calls got no response within {PATIENCE:?}");
        }
        Ok(latencies)
    }
}

/// Returns a percentile of durations.
pub(crate) fn percentile(durations: &[Duration], percent: f64) -> Duration {
    let mut sorted = durations.to_vec();
    sorted.sort_unstable();
    let index = (sorted.len() as f64 * percent / 100.0) as usize;
    sorted.get(index).or(sorted.last()).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::percentile;

    #[test]
    fn percentile_is_a_measured_value() {
        let durations: Vec<Duration> = (1..=200).rev().map(Duration::from_millis).collect();
        assert_eq!(percentile(&durations, 50.0), Duration::from_millis(101));
        assert_eq!(percentile(&durations, 99.0), Duration::from_millis(199));
        assert_eq!(percentile(&durations, 100.0), Duration::from_millis(200));
        assert_eq!(percentile(&[], 99.0), Duration::ZERO);
    }
}
