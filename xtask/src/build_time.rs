//! `cargo xtask build-time`: what a cold build costs, of the program and of hello world beside rmcp's.
//!
//! Each build has a new target directory, which is deleted behind it; crates are downloaded before. CPU seconds are those
//! of all processes that cargo started. They vary less than time on a clock, which depends on what else runs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Instant;
use std::{env, fs};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use xtask::args::Args;
use xtask::process;

/// How long the kernel's unit of CPU time is; the same on every Linux since 2.6.
const TICKS_PER_SECOND: f64 = 100.0;

/// Bars of the program: seconds of a dev and of a release build, megabytes of the latter.
const PROGRAM_SECONDS: [(&str, f64); 2] = [("dev", 150.0), ("release", 420.0)];
const PROGRAM_MEGABYTES: f64 = 40.0;

/// Bars of hello world, as multiples of what rmcp's takes.
const HELLO_CPU: f64 = 1.2;
const HELLO_SIZE: f64 = 1.5;

/// Manifest of the program's workspace.
const PROGRAM: &str = "Cargo.toml";

/// Page that `--write` writes.
const PAGE: &str = "docs/performance/build.md";

/// One thing that is built.
struct Subject {
    name: String,
    manifest: &'static str,
    package: String,
    /// Whether a lock file of its own pins what it uses.
    locked: bool,
}

/// What one build took.
#[derive(Debug)]
struct Build {
    name: String,
    profile: String,
    seconds: f64,
    /// Where the system counts it.
    cpu_seconds: Option<f64>,
    crates: usize,
    /// Of the program, if it is one.
    bytes: Option<u64>,
}

pub(crate) fn run(mut args: Args) -> Result<()> {
    let as_json = args.flag("--json");
    let fails = args.flag("--check");
    let write = args.flag("--write");
    let only = args.values("--only")?;
    let packages = args.values("--package")?;
    let mut profiles = args.values("--profile")?;
    args.finish()?;
    if profiles.is_empty() {
        profiles = vec!["dev".to_owned(), "release".to_owned()];
    }
    let mut builds = Vec::new();
    for subject in subjects(&only, &packages)? {
        prepare(&subject)?;
        for profile in &profiles {
            eprintln!("building {} ({profile}), cold", subject.name);
            builds.push(subject.build(profile)?);
        }
    }
    let broken = broken_bars(&builds);
    if write {
        fs::write(process::root().join(PAGE), page(&builds)).context("could not write the page")?;
    }
    if as_json {
        let all: Vec<Value> = builds.iter().map(Build::json).collect();
        let report = json!({ "cores": cores(), "builds": all, "broken_bars": broken });
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        print!("{}", table(&builds));
        for bar in &broken {
            println!("above its bar: {bar}");
        }
    }
    ensure!(broken.is_empty() || !fails, "{} figures are above their bars", broken.len());
    Ok(())
}

/// What was asked for: packages of the workspace, or some of the three that are measured.
fn subjects(only: &[String], packages: &[String]) -> Result<Vec<Subject>> {
    let of = |name: &str, manifest, package: &str, locked| {
        let (name, package) = (name.to_owned(), package.to_owned());
        Subject { name, manifest, package, locked }
    };
    if !packages.is_empty() {
        return Ok(packages.iter().map(|name| of(name, PROGRAM, name, true)).collect());
    }
    let all = [
        of("program", PROGRAM, "outlive-cli", true),
        of("hello", "peers/hello-outlive/Cargo.toml", "hello-outlive", false),
        of("hello-rmcp", "peers/hello-rmcp/Cargo.toml", "hello-rmcp", true),
    ];
    let unknown = only.iter().find(|name| !all.iter().any(|subject| subject.name == **name));
    if let Some(name) = unknown {
        bail!("unknown build `{name}`; there are program, hello and hello-rmcp");
    }
    Ok(all.into_iter().filter(|subject| only.is_empty() || only.contains(&subject.name)).collect())
}

/// Downloads what the build needs. Ours has the versions of the workspace.
fn prepare(subject: &Subject) -> Result<()> {
    let root = process::root();
    if !subject.locked {
        let lock = root.join(subject.manifest).with_file_name("Cargo.lock");
        fs::copy(root.join("Cargo.lock"), lock).context("could not copy the lock file")?;
    }
    if let Err(error) = process::run(&mut subject.cargo(&["fetch", "--quiet"])) {
        eprintln!("{error}; what is missing is downloaded by the build, and its time counts");
    }
    Ok(())
}

impl Subject {
    /// A cargo that builds as a user's does, whatever is set here.
    fn cargo(&self, words: &[&str]) -> std::process::Command {
        let mut cargo = process::cargo(words);
        cargo.args(["--manifest-path", self.manifest]);
        if self.locked {
            cargo.arg("--locked");
        }
        for (name, _) in env::vars_os() {
            let shown = name.to_string_lossy();
            if shown.starts_with("CARGO_PROFILE_")
                || matches!(
                    &*shown,
                    "CARGO_INCREMENTAL" | "CARGO_TARGET_DIR" | "RUSTC_WRAPPER" | "RUSTFLAGS"
                )
            {
                cargo.env_remove(&name);
            }
        }
        // Cargo never builds a crate of a registry incrementally, and hello world stands for a project
        // that takes ours from there. As a path it would be split into 256 units instead of 16, and each
        // unit repeats the debug information of the types that it uses.
        if self.manifest != PROGRAM {
            cargo.env("CARGO_INCREMENTAL", "0");
        }
        cargo
    }

    fn build(&self, profile: &str) -> Result<Build> {
        let target = Folder::new()?;
        let mut cargo = self.cargo(&["build", "--quiet", "--package", &self.package]);
        cargo.args([
            "--profile",
            profile,
            "--message-format=json-render-diagnostics",
            "--target-dir",
        ]);
        cargo.arg(&target.0).stderr(Stdio::inherit());
        let (start, before) = (Instant::now(), children_cpu());
        let output = cargo.output().context("could not start cargo")?;
        let seconds = start.elapsed().as_secs_f64();
        ensure!(output.status.success(), "{} could not be built ({profile})", self.name);
        let cpu_seconds = before.zip(children_cpu()).map(|(before, after)| after - before);
        let program = last_executable(&String::from_utf8_lossy(&output.stdout));
        let bytes = program.map(fs::metadata).transpose()?.map(|program| program.len());
        let (name, profile) = (self.name.clone(), profile.to_owned());
        Ok(Build { name, profile, seconds, cpu_seconds, crates: self.external_crates()?, bytes })
    }

    /// How many crates of others are built for this machine.
    fn external_crates(&self) -> Result<usize> {
        let mut tree = self.cargo(&["tree", "--edges", "normal,build", "--prefix", "none"]);
        let tree = process::answer(tree.args(["--package", &self.package]));
        Ok(external(&tree.context("`cargo tree` failed")?))
    }
}

/// Counts the lines of `cargo tree` that are no folders of this machine, each crate and version once.
pub(crate) fn external(tree: &str) -> usize {
    let lines = tree.lines().filter(|line| !line.contains("(/") && !line.trim().is_empty());
    let crates = lines.map(|line| line.split_whitespace().take(2).collect::<Vec<_>>());
    crates.collect::<BTreeSet<_>>().len()
}

/// The executable that cargo reports last.
fn last_executable(messages: &str) -> Option<PathBuf> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    messages.filter_map(|message| message["executable"].as_str().map(PathBuf::from)).next_back()
}

/// The CPU seconds of all processes that we have waited for, and of theirs. Linux says so.
fn children_cpu() -> Option<f64> {
    children_of(&fs::read_to_string("/proc/self/stat").ok()?)
}

/// Reads `cutime` and `cstime`, the 16th and 17th field. The second is a name that may have spaces.
fn children_of(stat: &str) -> Option<f64> {
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split_whitespace().collect();
    let ticks = fields.get(13)?.parse::<f64>().ok()? + fields.get(14)?.parse::<f64>().ok()?;
    Some(ticks / TICKS_PER_SECOND)
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

impl Build {
    fn json(&self) -> Value {
        json!({
            "name": self.name,
            "profile": self.profile,
            "seconds": self.seconds,
            "cpu_seconds": self.cpu_seconds,
            "crates": self.crates,
            "bytes": self.bytes,
        })
    }

    fn megabytes(&self) -> Option<f64> {
        self.bytes.map(|bytes| bytes as f64 / 1e6)
    }
}

fn table(builds: &[Build]) -> String {
    let mut text = format!(
        "cold builds, {} cores\n{:<12} {:<8} {:>9} {:>9} {:>7} {:>9}\n",
        cores(),
        "build",
        "profile",
        "seconds",
        "CPU s",
        "crates",
        "MB"
    );
    let figure = |figure: Option<f64>| {
        figure.map_or_else(|| "-".to_owned(), |figure| format!("{figure:.1}"))
    };
    for build in builds {
        text += &format!(
            "{:<12} {:<8} {:>9.1} {:>9} {:>7} {:>9}\n",
            build.name,
            build.profile,
            build.seconds,
            figure(build.cpu_seconds),
            build.crates,
            figure(build.megabytes())
        );
    }
    text
}

/// Returns the page of build times.
fn page(builds: &[Build]) -> String {
    let mut text = format!(
        "# Build times\n\n\
         Cold builds on {} cores with an empty target directory; downloads are not counted.\n\
         `cargo xtask build-time --write` wrote this page.\n\
         CPU seconds are those of all processes that cargo started; they depend less on what else runs than seconds do.\n\n\
         | build | profile | seconds | CPU seconds | external crates | binary, MB |\n\
         |---|---|---|---|---|---|\n",
        cores()
    );
    let figure = |figure: Option<f64>| {
        figure.map_or_else(|| "–".to_owned(), |figure| format!("{figure:.0}"))
    };
    for build in builds {
        text += &format!(
            "| {} | `{}` | {:.0} | {} | {} | {} |\n",
            described(&build.name),
            build.profile,
            build.seconds,
            figure(build.cpu_seconds),
            build.crates,
            figure(build.megabytes())
        );
    }
    text + &format!(
        "\nBars: the program takes at most {:.0} s in `dev` and {:.0} s in `release`, and its `release` binary has at most \
         {PROGRAM_MEGABYTES:.0} MB. Hello world has at most as many crates as rmcp's, and takes at most {HELLO_CPU} times its CPU \
         seconds and {HELLO_SIZE} times its megabytes. `cargo xtask build-time --check` fails if one is exceeded.\n",
        PROGRAM_SECONDS[0].1, PROGRAM_SECONDS[1].1,
    )
}

fn described(name: &str) -> &str {
    match name {
        "program" => "`outlive` (apps/cli)",
        "hello" => "hello world over HTTP, `outlive`",
        "hello-rmcp" => "hello world over HTTP, `rmcp`",
        other => other,
    }
}

/// Which figures are above what they may be.
fn broken_bars(builds: &[Build]) -> Vec<String> {
    let by_name: BTreeMap<(&str, &str), &Build> =
        builds.iter().map(|build| ((build.name.as_str(), build.profile.as_str()), build)).collect();
    let mut broken = Vec::new();
    let mut hold = |what: &str, figure: Option<f64>, bar: Option<f64>| {
        if let (Some(figure), Some(bar)) = (figure, bar)
            && figure > bar
        {
            broken.push(format!("{what}: {figure:.1}, and {bar:.1} is the most"));
        }
    };
    for (profile, most) in PROGRAM_SECONDS {
        let seconds = by_name.get(&("program", profile)).map(|build| build.seconds);
        hold(&format!("program ({profile}), seconds"), seconds, Some(most));
    }
    let program = by_name.get(&("program", "release")).and_then(|build| build.megabytes());
    hold("program (release), MB", program, Some(PROGRAM_MEGABYTES));
    for ((name, profile), ours) in &by_name {
        let Some(peer) = by_name.get(&("hello-rmcp", *profile)).filter(|_| *name == "hello") else {
            continue;
        };
        let crates = |build: &Build| Some(build.crates as f64);
        hold(&format!("hello ({profile}), crates"), crates(ours), crates(peer));
        let cpu = peer.cpu_seconds.map(|cpu| cpu * HELLO_CPU);
        hold(&format!("hello ({profile}), CPU seconds"), ours.cpu_seconds, cpu);
        let size = peer.megabytes().map(|size| size * HELLO_SIZE);
        hold(&format!("hello ({profile}), MB"), ours.megabytes(), size);
    }
    broken
}

/// A target directory that is deleted with this. On the disk of the project: memory may be too small for it.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Self> {
        let target = env::var_os("CARGO_TARGET_DIR")
            .map_or_else(|| process::root().join("target"), PathBuf::from);
        let folder = target.join(format!("build-time-{}", std::process::id()));
        ensure!(!Path::exists(&folder), "{} is in the way; delete it", folder.display());
        fs::create_dir_all(&folder).context("could not make a target directory")?;
        Ok(Self(folder))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::{
        Build, broken_bars, children_of, external, last_executable, page, subjects, table,
    };

    fn build(name: &str, profile: &str, cpu: f64, crates: usize, megabytes: u64) -> Build {
        let (name, profile) = (name.to_owned(), profile.to_owned());
        let bytes = Some(megabytes * 1_000_000);
        Build { name, profile, seconds: 100.0, cpu_seconds: Some(cpu), crates, bytes }
    }

    #[test]
    fn external_crates_are_counted_once_and_without_ours() {
        let tree = "outlive v0.1.0 (/home/ada/outlive)\nserde v1.0.2\nserde v1.0.2 (*)\nsyn v2.0.1 (proc-macro)\nsyn v3.0.9\n\n";
        assert_eq!(external(tree), 3);
    }

    #[test]
    fn cpu_of_children_is_read_behind_a_name_with_spaces() {
        let stat = "7 (a (b) c) S 1 2 3 4 5 6 7 8 9 10 11 12 250 50 20 0";
        assert_eq!(children_of(stat), Some(3.0));
        assert_eq!(children_of("7 (a) S 1"), None);
    }

    #[test]
    fn last_executable_is_the_program() {
        let messages = "{\"executable\":null}\n{\"executable\":\"a\"}\nnoise\n{\"executable\":\"b\"}\n{\"reason\":\"build-finished\"}\n";
        assert_eq!(last_executable(messages), Some("b".into()));
    }

    #[test]
    fn hello_world_is_held_against_rmcps_of_the_same_profile() {
        let peer = build("hello-rmcp", "dev", 100.0, 91, 60);
        let within = [build("hello", "dev", 119.0, 91, 89), peer];
        assert!(broken_bars(&within).is_empty(), "{:?}", broken_bars(&within));
        let [_, peer] = within;
        let above =
            [build("hello", "dev", 121.0, 92, 91), build("hello", "release", 1.0, 1, 1), peer];
        assert_eq!(broken_bars(&above).len(), 3, "{:?}", broken_bars(&above));
    }

    #[test]
    fn program_has_bars_of_its_own() {
        let builds =
            [build("program", "dev", 1.0, 1, 100), build("program", "release", 1.0, 1, 41)];
        assert_eq!(broken_bars(&builds), ["program (release), MB: 41.0, and 40.0 is the most"]);
        assert!(table(&builds).lines().count() == 4);
        assert!(page(&builds).contains("| `outlive` (apps/cli) | `dev` | 100 | 1 | 1 | 100 |"));
    }

    #[test]
    fn unknown_build_is_refused() {
        assert!(subjects(&["hallo".to_owned()], &[]).is_err());
        assert_eq!(subjects(&["hello".to_owned()], &[]).unwrap().len(), 1);
        assert_eq!(subjects(&[], &[]).unwrap().len(), 3);
    }
}
