//! Cost of a step in a tool worker, compared with a step in Rust on the same store in the same run.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use serde::Deserialize;
use xtask::process;

use super::bench::Bench;
use super::language::{BOTH, Language};
use crate::row::Row;

/// Additional time of a step.
const MAX_MEDIAN_MS: f64 = 0.2;
const MAX_P99_MS: f64 = 1.0;

/// Figures of one tool, as `step-cost` prints them.
#[derive(Debug, Deserialize)]
struct Figures {
    nanos: Vec<u64>,
    per_second: f64,
}

#[derive(Debug, Deserialize)]
struct Measured {
    rust: Figures,
    worker: Figures,
}

pub(super) fn run(bench: &Bench) -> Result<Vec<Row>> {
    // An unoptimized build on a busy machine has no meaningful cost.
    if bench.is_short {
        return Ok(Vec::new());
    }
    let program = built()?;
    let mut rows = Vec::new();
    for language in BOTH {
        rows.extend(measure(bench, &program, language)?);
    }
    Ok(rows)
}

/// Builds the optimized program.
fn built() -> Result<PathBuf> {
    let build = ["build", "--profile", "dist", "--package", "testbench", "--bin", "step-cost"];
    let found = process::reported(&mut process::cargo(&build), "step-cost")?;
    found.context("cargo did not report the binary `step-cost`")
}

fn measure(bench: &Bench, program: &PathBuf, language: Language) -> Result<Vec<Row>> {
    let folder = bench.folder().join(format!("cost-{}", language.name()));
    fs::create_dir_all(&folder)?;
    let (name, value) = language.package();
    let mut command = Command::new(program);
    command.arg(&folder).arg(format!("{name}={value}")).args(language.words());
    let output = command.output().context("could not start step-cost")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let measured: Measured = serde_json::from_str(&text).with_context(|| {
        format!("step-cost failed: {}", String::from_utf8_lossy(&output.stderr))
    })?;
    let Measured { mut rust, mut worker } = measured;
    rust.nanos.sort_unstable();
    worker.nanos.sort_unstable();
    let (median, p99) = (more(&rust, &worker, 50), more(&rust, &worker, 99));
    let latency = Row::new(
        format!("a step in {}, SQLite", language.name()),
        format!(
            "p50 {:.3} ms ({median:+.3} ms), p99 {:.3} ms ({p99:+.3} ms)",
            at(&worker, 50),
            at(&worker, 99)
        ),
        format!("≤ Rust's step + {MAX_MEDIAN_MS} ms (p50), + {MAX_P99_MS} ms (p99)"),
        median <= MAX_MEDIAN_MS && p99 <= MAX_P99_MS,
    );
    let enough = match language {
        Language::Python => 4_000.0,
        Language::TypeScript => 8_000.0,
    };
    let (own, of_rust) = (worker.per_second, rust.per_second);
    let throughput = Row::new(
        format!("64 parallel calls in one process, {}, SQLite", language.name()),
        format!("{own:.0} steps/s; Rust: {of_rust:.0} steps/s"),
        format!("≥ half of Rust's, or {enough:.0}"),
        own >= (of_rust / 2.0).min(enough),
    );
    Ok(vec![latency, throughput])
}

/// Milliseconds at a percentile of sorted times.
fn at(figures: &Figures, percent: usize) -> f64 {
    let index = (figures.nanos.len() * percent / 100).min(figures.nanos.len().saturating_sub(1));
    figures.nanos.get(index).map_or(f64::NAN, |&nanos| nanos as f64 / 1e6)
}

/// Additional milliseconds at a percentile.
fn more(rust: &Figures, worker: &Figures, percent: usize) -> f64 {
    at(worker, percent) - at(rust, percent)
}

#[cfg(test)]
mod tests {
    use super::{Figures, at};

    #[test]
    fn percentile_without_times_is_not_a_number() {
        let figures = |nanos| Figures { nanos, per_second: 0.0 };
        assert!(at(&figures(Vec::new()), 50).is_nan());
        assert_eq!(at(&figures(vec![1_000_000, 2_000_000, 3_000_000]), 50), 2.0);
    }
}
