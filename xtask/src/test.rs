//! `cargo xtask test`: the checks that a contributor runs before each commit. `--all` runs every check, as CI does.
//!
//! The steps are a list, from the cheap to the expensive: to add one, add a line to [`STEPS`]. The first failure ends the run.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use xtask::{
    args::Args,
    packages,
    process::{self, Build},
    tools::{self, Tool},
};

use crate::beside::Beside;
use crate::{advisories, examples, features, instructions, public_api, release, testbench, tidy};

/// Page that `--write` writes.
const PAGE: &str = "docs/performance/tests.md";

struct Step {
    name: &'static str,
    set: Set,
    run: Run,
}

/// The runs that a step belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Set {
    /// `cargo xtask test` and `cargo xtask test --all`.
    Quick,
    /// `cargo xtask test --all` only.
    All,
}

enum Run {
    /// A cargo command.
    Cargo(&'static [&'static str]),
    /// A third-party cargo subcommand.
    Tool(&'static Tool, &'static [&'static str]),
    /// The tests, with a temporary database and a terminal.
    Tests(&'static [&'static str]),
    /// The tests, with a database from the pinned package.
    TestsPackaged(&'static [&'static str]),
    /// `cargo doc`; a warning is an error.
    Doc(&'static [&'static str]),
    /// A command of this program that may skip checks on this machine. The last lines list the
    /// skipped checks.
    Noted(&'static str, fn() -> Result<Option<String>>),
    /// A command of `testbench`, with its arguments.
    Testbench(&'static [&'static str]),
    /// A command of this program, with its arguments, and its function.
    Xtask(&'static [&'static str], fn(Args) -> Result<()>),
}

const STEPS: &[Step] = &[
    Step { name: "fmt", set: Set::Quick, run: Run::Cargo(&["fmt", "--all", "--check"]) },
    Step { name: "tidy", set: Set::Quick, run: Run::Xtask(&["tidy"], tidy::run) },
    Step { name: "public-api", set: Set::All, run: Run::Xtask(&["public-api"], public_api::run) },
    Step {
        name: "clippy",
        set: Set::Quick,
        run: Run::Cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]),
    },
    Step {
        name: "deny",
        set: Set::All,
        run: Run::Tool(&tools::DENY, &["deny", "check", "bans", "licenses", "sources"]),
    },
    Step { name: "advisories", set: Set::All, run: Run::Noted("advisories", advisories::note) },
    Step { name: "features", set: Set::All, run: Run::Noted("features", features::check) },
    Step { name: "nextest", set: Set::Quick, run: Run::Tests(&["nextest", "run", "--workspace"]) },
    Step {
        name: "postgres-18",
        set: Set::All,
        run: Run::TestsPackaged(&[
            "nextest",
            "run",
            "--workspace",
            "--filterset",
            "package(outlive-tasks) & test(/^postgres::/)",
        ]),
    },
    Step { name: "doctests", set: Set::Quick, run: Run::Cargo(&["test", "--workspace", "--doc"]) },
    Step { name: "doc", set: Set::All, run: Run::Doc(&["doc", "--workspace", "--no-deps"]) },
    Step {
        name: "package",
        set: Set::All,
        run: Run::Xtask(&["release", "--dry-run", "--only", "packages"], release::run),
    },
    Step {
        name: "instructions",
        set: Set::All,
        run: Run::Xtask(&["instructions"], instructions::run),
    },
    Step {
        name: "examples",
        set: Set::Quick,
        run: Run::Xtask(&["examples", "--with-tests"], examples::run),
    },
    Step {
        name: "conformance",
        set: Set::Quick,
        run: Run::Testbench(&["conformance", "--with-tests"]),
    },
    Step {
        name: "conformance-gateway",
        set: Set::All,
        run: Run::Testbench(&["conformance", "--through-gateway", "--short", "--with-tests"]),
    },
    Step { name: "site", set: Set::All, run: Run::Testbench(&["site", "--with-tests"]) },
    Step { name: "clients", set: Set::All, run: Run::Testbench(&["clients", "--with-tests"]) },
    Step {
        name: "interop",
        set: Set::All,
        run: Run::Testbench(&["interop", "--short", "--with-tests"]),
    },
    Step { name: "logins", set: Set::All, run: Run::Testbench(&["logins", "--with-tests"]) },
    Step {
        name: "killed-clients",
        set: Set::All,
        run: Run::Testbench(&["killed-clients", "--runs", "60", "--with-tests"]),
    },
    Step { name: "soak", set: Set::All, run: Run::Testbench(&["soak", "--short", "--with-tests"]) },
    Step {
        name: "console",
        set: Set::All,
        run: Run::Testbench(&["console", "--short", "--with-tests"]),
    },
    Step { name: "views", set: Set::All, run: Run::Testbench(&["views", "--with-tests"]) },
    Step {
        name: "hosts",
        set: Set::All,
        run: Run::Testbench(&["hosts", "--short", "--with-tests"]),
    },
    Step {
        name: "workers",
        set: Set::All,
        run: Run::Testbench(&["workers", "--short", "--with-tests"]),
    },
    Step {
        name: "crash-sqlite",
        set: Set::All,
        run: Run::Testbench(&["crash", "--seconds", "60", "--with-tests"]),
    },
    Step {
        name: "crash-postgres",
        set: Set::All,
        run: Run::Testbench(&["crash", "--store", "postgres", "--seconds", "60", "--with-tests"]),
    },
    Step {
        name: "hostile",
        set: Set::All,
        run: Run::Testbench(&["hostile", "--short", "--with-tests"]),
    },
    Step {
        name: "gateway-isolation",
        set: Set::All,
        run: Run::Testbench(&["gateway-isolation", "--short", "--with-tests"]),
    },
    Step {
        name: "gateway-crash",
        set: Set::All,
        run: Run::Testbench(&["crash", "--gateway", "--short", "--with-tests"]),
    },
];

/// Steps that run at the lowest priority beside those that follow. They build with a profile or in a
/// folder of their own, so cargo does not wait for them.
const BESIDE: &[(&str, &[&str])] = &[
    ("package", &["release", "--dry-run", "--only", "packages"]),
    ("instructions", &["instructions"]),
];

/// The first step that measures times. From here on, nothing runs beside a step.
const FIRST_MEASURED: &str = "killed-clients";

pub(crate) fn run(mut args: Args) -> Result<()> {
    let list = args.flag("--list");
    let all = args.flag("--all");
    let only = args.values("--only")?;
    let skip = args.values("--skip")?;
    let write = args.flag("--write");
    args.finish()?;
    if write && (!all || !only.is_empty() || !skip.is_empty()) {
        bail!("`--write` writes the times of all steps; use it with `--all` alone");
    }
    for name in only.iter().chain(&skip) {
        if !STEPS.iter().any(|step| step.name == name) {
            bail!("unknown step `{name}`; the steps are {}", names().join(", "));
        }
    }
    if list {
        for step in STEPS {
            let set = if step.set == Set::Quick { "" } else { "--all" };
            println!("{:<19} {set:<5} {}", step.name, step.run);
        }
        return Ok(());
    }
    let chosen = |step: &&Step| {
        let name = step.name.to_owned();
        let in_run =
            if only.is_empty() { all || step.set == Set::Quick } else { only.contains(&name) };
        in_run && !skip.contains(&name)
    };
    let (times, total) = run_steps(STEPS.iter().filter(chosen))?;
    if write {
        fs::write(process::root().join(PAGE), page(&times, total))
            .context("could not write the page")?;
    }
    Ok(())
}

/// Steps and their durations.
type Times<'a> = Vec<(&'a Step, Duration)>;

/// Runs the steps. Returns the duration of each, and that of the run.
fn run_steps<'a>(steps: impl Iterator<Item = &'a Step>) -> Result<(Times<'a>, Duration)> {
    let start = Instant::now();
    let (mut times, mut notes, mut beside) = (Vec::new(), Vec::new(), Vec::new());
    let steps: Vec<&Step> = steps.collect();
    let measured = STEPS.iter().position(|step| step.name == FIRST_MEASURED);
    let is_measured =
        |step: &Step| STEPS.iter().position(|other| other.name == step.name) >= measured;
    for (index, &step) in steps.iter().enumerate() {
        if is_measured(step) {
            join(&mut beside, &mut times)?;
        }
        let time = seconds(start.elapsed());
        let followed = steps.get(index + 1).is_some_and(|next| !is_measured(next));
        let words = BESIDE.iter().find(|(name, _)| *name == step.name && followed);
        if let Some((_, words)) = words {
            eprintln!("\n== {} ({time} so far), beside the next steps: {}", step.name, step.run);
            beside.push((step, Beside::start(words)?));
            continue;
        }
        eprintln!("\n== {} ({time} so far): {}", step.name, step.run);
        let begun = Instant::now();
        let note = step.run.start().with_context(|| failed(step))?;
        notes.extend(note);
        times.push((step, begun.elapsed()));
    }
    join(&mut beside, &mut times)?;
    println!("\nEvery step passed.");
    for (step, time) in &times {
        println!("  {:<19} {:>9}", step.name, seconds(*time));
    }
    let total = start.elapsed();
    println!("  {:<19} {:>9}", "total", seconds(total));
    for note in notes {
        println!("{note}");
    }
    Ok((times, total))
}

/// Waits for the steps that run beside others.
fn join<'a>(beside: &mut Vec<(&'a Step, Beside)>, times: &mut Times<'a>) -> Result<()> {
    for (step, running) in beside.drain(..) {
        eprintln!("\n== {}, which ran beside the steps before:", step.name);
        times.push((step, running.join().with_context(|| failed(step))?));
    }
    Ok(())
}

fn failed(step: &Step) -> String {
    let name = step.name;
    format!("step `{name}` failed; repeat it with `cargo xtask test --only {name}`")
}

/// Returns the page of times.
fn page(times: &[(&Step, Duration)], total: Duration) -> String {
    let cores = process::cores();
    let quick = times.iter().filter(|(step, _)| step.set == Set::Quick);
    let quick = quick.map(|(_, time)| time.as_secs_f64()).sum::<f64>();
    let mut text = format!(
        "# Test times\n\n\
         `cargo xtask test --all --write` wrote this page, on {cores} cores. With an empty target folder, the first steps include all \
         compilation.\n\n\
         - `cargo xtask test`: {:.1} min (bar: 15)\n\
         - `cargo xtask test --all`: {:.1} min (bar: 60)\n\n\
         | step | run | seconds |\n|---|---|---|\n",
        quick / 60.0,
        total.as_secs_f64() / 60.0,
    );
    for (step, time) in times {
        let is_beside = BESIDE.iter().any(|(name, _)| *name == step.name);
        let run = match step.set {
            Set::Quick => "both",
            Set::All if is_beside => "`--all`, beside others",
            Set::All => "`--all`",
        };
        text += &format!("| {} | {run} | {:.0} |\n", step.name, time.as_secs_f64());
    }
    text
}

fn names() -> Vec<&'static str> {
    STEPS.iter().map(|step| step.name).collect()
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

impl Run {
    /// Runs the step and returns a note for the last lines.
    fn start(&self) -> Result<Option<String>> {
        match self {
            Self::Noted(_, command) => {
                let note = command()?;
                note.iter().for_each(|note| eprintln!("{note}"));
                Ok(note)
            }
            other => other.pass().map(|()| None),
        }
    }

    fn pass(&self) -> Result<()> {
        match self {
            Self::Cargo(args) => process::run(&mut process::cargo(args)),
            Self::Tool(tool, args) => {
                tools::ensure(tool)?;
                process::run(&mut process::cargo(args))
            }
            Self::Tests(args) => {
                packages::ensure(&packages::TMUX)?;
                run_tests(args, &[])
            }
            Self::TestsPackaged(args) => run_tests(args, &["--wheel", "--or-skip"]),
            Self::Doc(args) => {
                process::run(process::cargo(args).env("RUSTDOCFLAGS", "-D warnings"))
            }
            Self::Noted(_, command) => command().map(drop),
            Self::Testbench(words) => testbench::run(words),
            Self::Xtask(words, command) => command(Args::from_words(&words[1..])),
        }
    }
}

/// Runs tests with a temporary database.
fn run_tests(args: &[&str], options: &[&str]) -> Result<()> {
    tools::ensure(&tools::NEXTEST)?;
    testbench::with_postgres(options, &process::cargo(args), Build::WithTests)
}

/// The command as text.
impl std::fmt::Display for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Cargo(args) | Self::Tool(_, args) => write!(f, "cargo {}", args.join(" ")),
            Self::Tests(args) | Self::TestsPackaged(args) => {
                write!(f, "{}=… cargo {}", testbench::ADDRESS, args.join(" "))
            }
            Self::Doc(args) => write!(f, "RUSTDOCFLAGS='-D warnings' cargo {}", args.join(" ")),
            Self::Noted(word, _) => write!(f, "cargo xtask {word}"),
            Self::Testbench(words) | Self::Xtask(words, _) => {
                write!(f, "cargo xtask {}", words.join(" "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Args, BESIDE, FIRST_MEASURED, STEPS, Set, names, page, run};

    #[test]
    fn step_names_are_unique() {
        let mut names = names();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), STEPS.len());
    }

    #[test]
    fn page_sums_quick_steps_and_all_steps() {
        let quick = STEPS.iter().find(|step| step.set == Set::Quick).unwrap();
        let other = STEPS.iter().find(|step| step.set == Set::All).unwrap();
        let times = [(quick, Duration::from_secs(60)), (other, Duration::from_secs(150))];
        let page = page(&times, Duration::from_secs(180));
        assert!(page.contains("`cargo xtask test`: 1.0 min"), "{page}");
        assert!(page.contains("`cargo xtask test --all`: 3.0 min"), "{page}");
    }

    #[test]
    fn steps_beside_others_are_steps_before_the_first_measured_one() {
        let position = |name| STEPS.iter().position(|step| step.name == name);
        let measured = position(FIRST_MEASURED).unwrap();
        for (name, _) in BESIDE {
            assert!(position(name).unwrap() < measured, "{name}");
        }
    }

    #[test]
    fn unknown_step_is_rejected_with_list_of_steps() {
        let error = run(Args::from_words(&["--only", "clipy"])).unwrap_err();
        assert!(error.to_string().contains("clippy"), "{error}");
    }
}
