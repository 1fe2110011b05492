//! `cargo xtask build-time`: the cost of a cold build of the program, and of hello world beside
//! rmcp's.
//!
//! Each build has a new target directory, which is deleted afterwards. Crates are downloaded
//! before. CPU seconds include all processes of cargo. They vary less than wall-clock time, which
//! depends on other load.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Instant;
use std::{env, fs};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use xtask::args::Args;
use xtask::process;

/// Unit of the kernel's CPU time; constant since Linux 2.6.
const TICKS_PER_SECOND: f64 = 100.0;

/// Limits of the program: CPU seconds of a dev and of a release build, megabytes of the release
/// build.
const PROGRAM_SECONDS: [(&str, f64); 2] = [("dev", 150.0), ("release", 420.0)];
const PROGRAM_MEGABYTES: f64 = 40.0;

/// Limits of hello world, relative to rmcp's.
const HELLO_CPU: f64 = 1.2;
const HELLO_SIZE: f64 = 1.5;

/// Manifest of the program's workspace.
const PROGRAM: &str = "Cargo.toml";

/// Page that `--write` writes.
const PAGE: &str = "docs/performance/build.md";

/// A build subject.
struct Subject {
    name: String,
    manifest: &'static str,
    package: String,
    /// Whether its own lock file pins its dependencies.
    locked: bool,
}

/// The result of one build.
#[derive(Debug)]
struct Build {
    name: String,
    profile: String,
    seconds: f64,
    /// `None` if the system does not count it.
    cpu_seconds: Option<f64>,
    crates: usize,
    /// Size of the program, if there is one.
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
            println!("exceeds its limit: {bar}");
        }
    }
    ensure!(broken.is_empty() || !fails, "{} figures exceed their limits", broken.len());
    Ok(())
}

/// Returns the selected packages of the workspace, or the selected ones of the three subjects.
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
        bail!("unknown build `{name}`; use program, hello or hello-rmcp");
    }
    Ok(all.into_iter().filter(|subject| only.is_empty() || only.contains(&subject.name)).collect())
}

/// Downloads the dependencies. Ours use the versions of the workspace.
fn prepare(subject: &Subject) -> Result<()> {
    let root = process::root();
    if !subject.locked {
        let lock = root.join(subject.manifest).with_file_name("Cargo.lock");
        fs::copy(root.join("Cargo.lock"), lock).context("could not copy the lock file")?;
    }
    if let Err(error) = process::run(&mut subject.cargo(&["fetch", "--quiet"])) {
        eprintln!("{error}; the build downloads missing crates, and the download counts");
    }
    Ok(())
}

impl Subject {
    /// A cargo command with the default settings of a user.
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

    /// Number of external crates that are built for this platform.
    fn external_crates(&self) -> Result<usize> {
        let mut tree = self.cargo(&["tree", "--edges", "normal,build", "--prefix", "none"]);
        let tree = process::answer(tree.args(["--package", &self.package]));
        Ok(external(&tree.context("`cargo tree` failed")?))
    }
}

/// Counts the external crates in the output of `cargo tree`, each version once.
pub(crate) fn external(tree: &str) -> usize {
    let lines = tree.lines().filter(|line| !line.contains("(/") && !line.trim().is_empty());
    let crates = lines.map(|line| line.split_whitespace().take(2).collect::<Vec<_>>());
    crates.collect::<BTreeSet<_>>().len()
}

/// The last executable in the messages of cargo.
fn last_executable(messages: &str) -> Option<PathBuf> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    messages.filter_map(|message| message["executable"].as_str().map(PathBuf::from)).next_back()
}

/// CPU seconds of all waited-for child processes and their children, from Linux.
fn children_cpu() -> Option<f64> {
    children_of(&fs::read_to_string("/proc/self/stat").ok()?)
}

/// Parses `cutime` and `cstime`, fields 16 and 17. Field 2 is a name that may contain spaces.
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

/// Returns the figures that exceed their limits.
fn broken_bars(builds: &[Build]) -> Vec<String> {
    let by_name: BTreeMap<(&str, &str), &Build> =
        builds.iter().map(|build| ((build.name.as_str(), build.profile.as_str()), build)).collect();
    let mut broken = Vec::new();
    let mut hold = |what: &str, figure: Option<f64>, bar: Option<f64>| {
        if let (Some(figure), Some(bar)) = (figure, bar)
            && figure > bar
        {
            broken.push(format!("{what}: {figure:.1}, limit {bar:.1}"));
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

/// A target directory, deleted on drop. It is on the disk of the project, because memory may be too
/// small.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Self> {
        let target = env::var_os("CARGO_TARGET_DIR")
            .map_or_else(|| process::root().join("target"), PathBuf::from);
        let folder = target.join(format!("build-time-{}", std::process::id()));
        ensure!(!Path::exists(&folder), "{} exists; delete it", folder.display());
        fs::create_dir_all(&folder).context("could not create a target directory")?;
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
    fn external_crates_are_counted_once_per_version() {
        let tree = "outlive v0.1.0 (/home/ada/outlive)\nserde v1.0.2\nserde v1.0.2 (*)\nsyn v2.0.1 (proc-macro)\nsyn v3.0.9\n\n";
        assert_eq!(external(tree), 3);
    }

    #[test]
    fn cpu_time_of_children_is_parsed_after_name_with_spaces() {
        let stat = "7 (a (b) c) S 1 2 3 4 5 6 7 8 9 10 11 12 250 50 20 0";
        assert_eq!(children_of(stat), Some(3.0));
        assert_eq!(children_of("7 (a) S 1"), None);
    }

    #[test]
    fn program_is_last_executable() {
        let messages = "{\"executable\":null}\n{\"executable\":\"a\"}\nnoise\n{\"executable\":\"b\"}\n{\"reason\":\"build-finished\"}\n";
        assert_eq!(last_executable(messages), Some("b".into()));
    }

    #[test]
    fn hello_world_is_compared_with_rmcp_of_same_profile() {
        let peer = build("hello-rmcp", "dev", 100.0, 91, 60);
        let within = [build("hello", "dev", 119.0, 91, 89), peer];
        assert!(broken_bars(&within).is_empty(), "{:?}", broken_bars(&within));
        let [_, peer] = within;
        let above =
            [build("hello", "dev", 121.0, 92, 91), build("hello", "release", 1.0, 1, 1), peer];
        assert_eq!(broken_bars(&above).len(), 3, "{:?}", broken_bars(&above));
    }

    #[test]
    fn program_has_separate_limits() {
        let builds =
            [build("program", "dev", 1.0, 1, 100), build("program", "release", 1.0, 1, 41)];
        assert_eq!(broken_bars(&builds), ["program (release), MB: 41.0, limit 40.0"]);
        assert!(table(&builds).lines().count() == 4);
        assert!(page(&builds).contains("| `outlive` (apps/cli) | `dev` | 100 | 1 | 1 | 100 |"));
    }

    #[test]
    fn unknown_build_is_rejected() {
        assert!(subjects(&["hallo".to_owned()], &[]).is_err());
        assert_eq!(subjects(&["hello".to_owned()], &[]).unwrap().len(), 1);
        assert_eq!(subjects(&[], &[]).unwrap().len(), 3);
    }
}
