//! The caller of an honest upstream during an attack.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::hosts::caller::{Caller, text};

/// Time between two calls.
const INTERVAL: Duration = Duration::from_millis(10);

/// Latencies and failures of the honest caller.
#[derive(Debug, Default)]
pub(super) struct Experience {
    pub(super) calls: Vec<Duration>,
    pub(super) failures: Vec<String>,
}

impl Experience {
    /// The 99th percentile of the latencies.
    pub(super) fn p99(&self) -> Duration {
        let mut calls = self.calls.clone();
        calls.sort_unstable();
        calls.get(calls.len() * 99 / 100).or(calls.last()).copied().unwrap_or_default()
    }
}

/// Calls the honest upstream until the end.
pub(super) fn run(caller: &Caller, is_over: &AtomicBool) -> Experience {
    let mut experience = Experience::default();
    let mut number = 0;
    while !is_over.load(Ordering::Relaxed) {
        number += 1;
        let own = format!("honest {number}");
        let begun = Instant::now();
        match caller.call("honest__echo", json!({"text": own})) {
            Ok(message) if text(&message) == own => experience.calls.push(begun.elapsed()),
            Ok(message) => experience.failures.push(message.to_string()),
            Err(error) => experience.failures.push(error.to_string()),
        }
        thread::sleep(INTERVAL);
    }
    experience
}
