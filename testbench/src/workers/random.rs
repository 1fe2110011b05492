//! Random programs whose tool worker is killed at a line.
//!
//! `line-killer` counts the lines of a call in both directions. Most programs are killed at one random
//! line; some at every line, each in a separate call. The test kits of the packages replay such
//! programs at every input request.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Context, Result, anyhow};
use serde_json::{Value, json};

use super::bench::Bench;
use super::language::{BOTH, Language};
use super::programs::Program;
use super::site::{Server, Site};
use super::task;
use crate::crash::random::Random;
use crate::row::Row;

/// Parallel calls, each with a process to itself.
const CALLERS: usize = 4;
const MORE: &str = "processes = 4\nmax_concurrent = 1\n";

/// One call of a program, with the line at which it is killed.
#[derive(Debug)]
struct Case {
    key: String,
    program: Program,
    line: u64,
    /// Whether the line is lost.
    is_lost: bool,
}

pub(super) fn run(bench: &Bench) -> Result<Vec<Row>> {
    BOTH.map(|language| row(bench, language)).into_iter().collect()
}

fn row(bench: &Bench, language: Language) -> Result<Row> {
    let site = Site::new(bench, &format!("random-{}", language.name()), None)?;
    let recorded = site.folder().join("recorded");
    let killer = bench.program_beside("line-killer")?;
    let before = [killer.display().to_string(), recorded.display().to_string()];
    site.configure(&language.section(&site.executions(), &before, MORE))?;
    let server = site.start(0)?;
    let (programs, thorough) = bench.choose((2_000, 50), (40, 3));
    let cases = cases(bench.seed, programs, thorough);
    let wrong = play(&server, &cases)?;
    let executed = count(&site.executions())?;
    let recorded: HashSet<String> =
        fs::read_to_string(&recorded).unwrap_or_default().lines().map(str::to_owned).collect();
    let repeated: usize = executed.values().map(|count| count - 1).sum();
    let wrong_executions = cases.iter().filter_map(|case| excess(case, &executed, &recorded));
    let deviations: Vec<String> = wrong.into_iter().chain(wrong_executions).collect();
    let killed = kills(site.folder())?;
    let mut figure = format!(
        "{programs} programs in {} calls, {killed} kills, {repeated} steps in progress executed twice, {} deviations",
        cases.len(),
        deviations.len()
    );
    if let Some(first) = deviations.first() {
        figure.push_str(&format!("; first (seed {}): {first}", bench.seed));
    }
    let case = format!(
        "random programs in {}, killed at one line, {thorough} of them at every line",
        language.name()
    );
    let bar = "results, segments and executions as undisturbed; steps in progress at a kill may execute twice";
    // Runs that end before their line are not killed; most are.
    Ok(Row::new(case, figure, bar, deviations.is_empty() && killed * 2 > cases.len()))
}

/// Returns the calls of all programs.
fn cases(seed: u64, programs: usize, thorough: usize) -> Vec<Case> {
    let mut cases = Vec::new();
    for number in 0..programs {
        let random = Random::new(seed).fork(number as u64);
        let program = |key: &str| Program::new(&mut random.clone(), key);
        let mut choice = random.fork(1);
        let lines = program("").lines;
        let chosen = match number < thorough {
            true => (1..=lines).collect(),
            false => vec![1 + choice.next() % lines],
        };
        for line in chosen {
            let key = format!("p{number}-{line}");
            cases.push(Case { program: program(&key), key, line, is_lost: choice.percent(50) });
        }
    }
    cases
}

/// Runs all calls. Returns a description of each wrong result.
fn play(server: &Server, cases: &[Case]) -> Result<Vec<String>> {
    let next = AtomicUsize::new(0);
    let caller = || {
        let client = server.caller();
        let mut wrong = Vec::new();
        while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            let kill = json!({"line": case.line, "is_lost": case.is_lost});
            let operations = &case.program.operations;
            let arguments = json!({"key": case.key, "kill": kill, "operations": operations});
            let id = task::start(&client, "play", arguments)?;
            let texts = task::texts(&client, &id).with_context(|| case.key.clone())?;
            wrong.extend(difference(case, texts));
        }
        anyhow::Ok(wrong)
    };
    thread::scope(|scope| {
        let callers: Vec<_> = (0..CALLERS).map(|_| scope.spawn(caller)).collect();
        let mut wrong = Vec::new();
        for caller in callers {
            wrong.extend(caller.join().map_err(|_| anyhow!("a thread panicked"))??);
        }
        Ok(wrong)
    })
}

/// Describes how the texts of a result differ from those of an undisturbed run.
fn difference(case: &Case, mut texts: Vec<String>) -> Option<String> {
    let Program { result, segments, .. } = &case.program;
    let last = texts.pop().unwrap_or_default();
    texts.sort();
    let is_equal = serde_json::from_str::<Value>(&last).is_ok_and(|value| value == *result);
    match is_equal && texts == *segments {
        true => None,
        false => {
            Some(format!("{}: {last} with {texts:?}, not {result} with {segments:?}", case.key))
        }
    }
}

/// Describes a step that was not executed, or more often than its kill explains.
fn excess(
    case: &Case,
    executed: &HashMap<String, usize>,
    recorded: &HashSet<String>,
) -> Option<String> {
    case.program.steps.iter().find_map(|step| {
        let count = executed.get(step).copied().unwrap_or(0);
        let most = if recorded.contains(step) { 1 } else { 2 };
        (count == 0 || count > most).then(|| format!("{step} was executed {count} times"))
    })
}

/// Counts the lines of a file.
fn count(file: &Path) -> Result<HashMap<String, usize>> {
    let mut counts = HashMap::new();
    for line in fs::read_to_string(file)?.lines() {
        *counts.entry(line.to_owned()).or_default() += 1;
    }
    Ok(counts)
}

/// Counts the markers of `line-killer`.
fn kills(folder: &Path) -> Result<usize> {
    let mut count = 0;
    for entry in fs::read_dir(folder)? {
        count += usize::from(entry?.file_name().to_string_lossy().starts_with("recorded.killed."));
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::{HashMap, HashSet, cases, difference, excess};

    #[test]
    fn thorough_programs_are_killed_at_every_line() {
        let all = cases(1, 3, 1);
        let lines: Vec<u64> =
            all.iter().filter(|case| case.key.starts_with("p0-")).map(|case| case.line).collect();
        assert_eq!(lines, (1..=all[0].program.lines).collect::<Vec<_>>());
        assert_eq!(all.len(), lines.len() + 2);
    }

    #[test]
    fn other_results_and_executions_are_deviations() {
        let all = cases(1, 20, 0);
        let case = all.iter().find(|case| !case.program.steps.is_empty()).unwrap();
        let right = [&case.program.segments[..], &[case.program.result.to_string()]].concat();
        assert_eq!(difference(case, right.clone()), None);
        assert!(difference(case, [right, vec!["[]".to_owned()]].concat()).is_some());
        let step = case.program.steps[0].clone();
        let mut executed: HashMap<String, usize> =
            case.program.steps.iter().map(|step| (step.clone(), 1)).collect();
        let none = HashSet::new();
        assert_eq!(excess(case, &executed, &none), None);
        executed.insert(step.clone(), 2);
        assert_eq!(excess(case, &executed, &none), None, "it was in progress");
        assert!(excess(case, &executed, &HashSet::from([step.clone()])).is_some());
        executed.remove(&step);
        assert!(excess(case, &executed, &none).is_some());
    }
}
