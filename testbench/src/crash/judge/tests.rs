//! Sequences of lines with and without violations.

use super::super::oracle::Line;
use super::{Findings, Violation, judge_lines};

fn judge(story: &str) -> Findings {
    let lines: Vec<Line> = story.lines().map(|line| line.trim().parse().unwrap()).collect();
    judge_lines(&lines, &["freeze", "thaw"])
}

#[track_caller]
fn found(story: &str, what: &str) {
    let findings = judge(story);
    let first = findings.violations.first().unwrap_or_else(|| panic!("no violation was found"));
    assert!(first.what.contains(what), "{first:?}");
}

#[track_caller]
fn fine(story: &str) -> Findings {
    let findings = judge(story);
    assert_eq!(findings.violations, []);
    findings
}

#[test]
fn reclaimed_task_passes_and_is_timed() {
    let findings = fine(
        "10 0.1#0 j run
         11 0.1#0 j begin 0 a
         12 0.1#0 j have 0 a
         13 0.1#0 j begin 1 b
         20 harness - fault kill 0.1
         50 1.1#0 j run
         51 1.1#0 j have 0 a
         52 1.1#0 j begin 1 c
         53 1.1#0 j have 1 c
         54 1.1#0 j end",
    );
    assert_eq!((findings.executions, findings.repeated, findings.in_vain), (3, 1, 0));
    assert_eq!(findings.takeovers, [32]);
    assert_eq!(findings.hits["kill"], 1);
}

#[test]
fn thawed_worker_may_run_body_but_not_record_it() {
    let thawed = "10 0.1#0 j run
         11 harness - fault freeze 0.1
         20 1.1#0 j run
         21 1.1#0 j begin 0 b
         22 1.1#0 j have 0 b
         30 0.1#0 j begin 0 a";
    assert_eq!(fine(thawed).in_vain, 1);
    found(&format!("{thawed}\n31 0.1#0 j have 0 a"), "another run had recorded step 0");
    found(&format!("{thawed}\n31 0.1#0 j begin 1 a"), "after losing step 0");
}

/// The signal was sent before the line was written and took effect after it.
#[test]
fn worker_signalled_at_start_counts_as_hit() {
    for kind in ["freeze", "restart", "kill"] {
        let story = format!(
            "10 harness - fault {kind} 0.1
             11 0.1#0 j run
             11 0.1#0 j begin 0 a
             90 1.1#0 j run
             90 1.1#0 j begin 0 b"
        );
        assert_eq!(without_blocking(&story), []);
        let again = format!("{story}\n95 2.1#0 j run\n95 2.1#0 j begin 0 c");
        assert_eq!(without_blocking(&again).len(), 1, "one {kind} explained two repetitions");
    }
}

/// Checks lines under failures that block no other process.
fn without_blocking(story: &str) -> Vec<Violation> {
    let lines: Vec<Line> = story.lines().map(|line| line.trim().parse().unwrap()).collect();
    judge_lines(&lines, &[]).violations
}

#[test]
fn changed_record_is_violation() {
    found(
        "10 0.1#0 j run
         11 0.1#0 j begin 0 a
         12 0.1#0 j have 0 a
         13 harness - fault kill 0.1
         20 1.1#0 j run
         21 1.1#0 j have 0 b",
        "recorded as a and as b",
    );
}

#[test]
fn repeated_step_without_fault_is_violation() {
    found(
        "10 0.1#0 j run
         11 0.1#0 j begin 0 a
         20 1.1#0 j run
         21 1.1#0 j begin 0 b",
        "ran 2 times",
    );
}

#[test]
fn fault_blocking_all_processes_explains_repeated_step() {
    let healthy = "10 0.1#0 j run
         11 0.1#0 j begin 0 a
         20 1.1#0 j run
         21 1.1#0 j begin 0 b";
    found(healthy, "ran 2 times");
    fine(&healthy.replace("20 1.1#0", "12 harness - fault freeze 2.1\n20 1.1#0"));
    // A process claims a task, is frozen, and starts the task after its lease has expired.
    fine(&healthy.replace("20 1.1#0", "12 harness - fault thaw 0.1\n20 1.1#0"));
}

#[test]
fn machine_stall_explains_one_repetition_and_late_start() {
    let slow = "10 0.1#0 j run
         11 0.1#0 j begin 0 a
         12 harness - fault stall machine
         20 1.1#0 j run
         21 1.1#0 j begin 0 b
         22 harness - fault flow machine";
    fine(slow);
    found(&format!("{slow}\n3000 2.1#0 j run\n3001 2.1#0 j begin 0 c"), "ran 3 times");
    let cancelled = "10 0.1#0 j run
         20 harness j cancelled
         30 harness - fault stall machine";
    fine(&format!("{cancelled}\n3000 1.1#0 j run"));
    found(
        &format!("{cancelled}\n40 harness - fault flow machine\n3000 1.1#0 j run"),
        "cancellation",
    );
}

#[test]
fn freeze_explains_one_repetition_only() {
    found(
        "10 0.1#0 j run
         11 0.1#0 j begin 0 a
         12 harness - fault freeze 0.1
         20 1.1#0 j run
         21 1.1#0 j begin 0 b
         22 harness - fault thaw 0.1
         30 0.1#1 j run
         31 0.1#1 j begin 0 c",
        "ran 3 times",
    );
}

#[test]
fn run_started_after_cancellation_is_violation() {
    let cancelled = "10 0.1#0 j run
         11 harness - fault freeze 0.1
         20 harness j cancelled";
    fine(&format!("{cancelled}\n500 1.1#0 j run"));
    found(&format!("{cancelled}\n3000 1.1#0 j run"), "after the cancellation");
    fine(&format!("{cancelled}\n2990 harness - fault thaw 0.1\n3000 0.1#1 j run"));
}

#[test]
fn run_started_late_after_thaw_explains_one_repetition() {
    let late = "10 harness - fault freeze 0.1
         30 harness - fault thaw 0.1
         40 0.1#0 j run
         41 0.1#0 j begin 0 a
         50 0.1#1 j run
         51 0.1#1 j begin 0 b";
    fine(late);
    found(&format!("{late}\n60 0.1#2 j run\n61 0.1#2 j begin 0 c"), "ran 3 times");
}
