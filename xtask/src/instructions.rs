//! `cargo xtask instructions`: instruction counts of calls, from valgrind, compared with the
//! recorded counts.
//!
//! Timings would not show an increase of five percent; counts do, also on a busy machine. Counts
//! depend on the compiler: `instructions.json` has them by compiler version. Another compiler is
//! compared with the newest known one, with a larger tolerance.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context, Result, bail, ensure};

use xtask::args::Args;
use xtask::packages;
use xtask::process;

const FIGURES: &str = "benches/counts/instructions.json";

/// Two numbers of calls. The difference of the runs is the cost of the calls without the startup.
const CALLS: [u64; 2] = [200, 1_200];

/// Allowed growth in percent: hash keys differ in every process, and memory copies differ between
/// processors.
const ROOM: u64 = 5;

/// Allowed growth in percent with another compiler.
const ROOM_FOR_COMPILERS: u64 = 15;

/// Instructions per call, by the name of the path.
type Counts = BTreeMap<String, u64>;

/// Counts by compiler and platform.
type Known = BTreeMap<String, Counts>;

pub(crate) fn run(mut args: Args) -> Result<()> {
    let update = args.flag("--update");
    args.finish()?;
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        eprintln!(
            "NOT RUN, and not counted as a failure: counts are recorded for Linux on x86-64 only"
        );
        return Ok(());
    }
    packages::ensure(&packages::VALGRIND)?;
    let counts = count(&process::built_to_count()?)?;
    let file = process::root().join(FIGURES);
    let mut known = read(&file)?;
    let compiler = compiler()?;
    if update {
        known.insert(compiler, counts);
        let text = serde_json::to_string_pretty(&known)?;
        fs::write(&file, text + "\n").context("could not write the counts")?;
        println!("{FIGURES} has the new counts; state the reason in the commit");
        return Ok(());
    }
    let (name, before, room) = match (known.get(&compiler), known.last_key_value()) {
        (Some(before), _) => (&compiler, before, ROOM),
        (None, Some((newest, before))) => (newest, before, ROOM_FOR_COMPILERS),
        (None, None) => bail!("{FIGURES} has no counts; run `cargo xtask instructions --update`"),
    };
    println!("instructions per call, and the recorded count with {name}:");
    let findings = compare(before, &counts, room);
    match findings.is_empty() {
        true => Ok(()),
        false => bail!(
            "{}\nfind the cause with `valgrind --tool=callgrind` and `callgrind_annotate`; if it is justified, run `cargo xtask instructions --update` and state the reason",
            findings.join("\n")
        ),
    }
}

fn count(program: &Path) -> Result<Counts> {
    let names = process::answer(&mut Command::new(program)).context("no paths are defined")?;
    names.lines().map(|name| Ok((name.to_owned(), per_call(program, name)?))).collect()
}

fn per_call(program: &Path, name: &str) -> Result<u64> {
    let [few, many] = CALLS.map(|calls| instructions(program, name, calls));
    let (few, many) = (few?, many?);
    ensure!(many > few, "`{name}` takes fewer instructions for more calls");
    Ok((many - few) / (CALLS[1] - CALLS[0]))
}

/// The instructions of a whole run.
fn instructions(program: &Path, name: &str, calls: u64) -> Result<u64> {
    let file = env::temp_dir().join(format!("outlive-counts-{}", std::process::id()));
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--quiet", "--tool=callgrind"]);
    valgrind.arg(format!("--callgrind-out-file={}", file.display()));
    let ran = process::run(valgrind.arg(program).args([name, &calls.to_string()]));
    let report = fs::read_to_string(&file);
    let _ = fs::remove_file(&file);
    ran?;
    total(&report.context("valgrind wrote no output")?).context("valgrind wrote no total")
}

/// Parses the total in the output of callgrind.
fn total(report: &str) -> Option<u64> {
    report.lines().find_map(|line| line.strip_prefix("totals: ")?.trim().parse().ok())
}

/// Prints all counts and returns those that exceed the tolerance.
fn compare(before: &Counts, now: &Counts, room: u64) -> Vec<String> {
    let mut findings = Vec::new();
    for (name, now) in now {
        let Some(before) = before.get(name) else {
            findings.push(format!("`{name}` is missing in {FIGURES}"));
            continue;
        };
        println!("  {name:<16} {now:>8} {before:>8}");
        if *now * 100 > before * (100 + room) {
            findings.push(format!("`{name}` takes {now} instructions, recorded {before}"));
        } else if *now * (100 + room) < before * 100 {
            println!("  improved: record it with `cargo xtask instructions --update`");
        }
    }
    findings
}

fn read(file: &Path) -> Result<Known> {
    match fs::read_to_string(file) {
        Ok(text) => serde_json::from_str(&text).with_context(|| format!("{FIGURES} is not JSON")),
        Err(_) => Ok(Known::new()),
    }
}

/// Returns `rustc 1.95.0`, without the commit.
fn compiler() -> Result<String> {
    let rustc = env::var_os("RUSTC").map_or_else(|| PathBuf::from("rustc"), PathBuf::from);
    let answer = process::answer(Command::new(rustc).arg("--version")).context("no rustc")?;
    Ok(answer.split_whitespace().take(2).collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::{Counts, compare, total};

    fn counts(count: u64) -> Counts {
        Counts::from([("a".to_owned(), count)])
    }

    #[test]
    fn callgrind_total_is_parsed() {
        assert_eq!(total("events: Ir\nsummary: 12\n\ntotals: 12\n"), Some(12));
        assert_eq!(total("events: Ir\n"), None);
    }

    #[test]
    fn growth_beyond_tolerance_is_found() {
        assert!(compare(&counts(1_000), &counts(1_030), 3).is_empty());
        assert!(compare(&counts(1_000), &counts(500), 3).is_empty());
        assert!(compare(&counts(1_000), &counts(1_031), 3)[0].contains("1031"));
        assert!(compare(&Counts::new(), &counts(1), 3)[0].contains("is missing in"));
    }
}
