//! Subjects of the measurement, and the cost of a build.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Instant;
use std::{env, fs};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::report::Build;
use crate::packaged::{self, Transport};
use xtask::process::{self, target_folder};

/// Unit of the kernel's CPU time; constant since Linux 2.6.
const TICKS_PER_SECOND: f64 = 100.0;

/// A build subject.
pub(super) struct Subject {
    pub(super) name: String,
    kind: Kind,
}

enum Kind {
    /// A package of the workspace.
    Workspace(String),
    /// Hello world from our packaged crates.
    Hello(Transport),
    /// A project with its own lock file: the folder of its manifest.
    Peer(&'static str),
}

/// Returns the selected packages of the workspace, or the selected ones of the subjects.
pub(super) fn subjects(only: &[String], packages: &[String]) -> Result<Vec<Subject>> {
    let of = |name: &str, kind| Subject { name: name.to_owned(), kind };
    if !packages.is_empty() {
        let package = |name: &String| of(name, Kind::Workspace(name.clone()));
        return Ok(packages.iter().map(package).collect());
    }
    let all = [
        of("program", Kind::Workspace("outlive-cli".to_owned())),
        of("hello", Kind::Hello(Transport::Http)),
        of("hello-rmcp", Kind::Peer("peers/hello-rmcp")),
        of("hello-stdio", Kind::Hello(Transport::Stdio)),
        of("hello-stdio-rmcp", Kind::Peer("peers/hello-rmcp-stdio")),
    ];
    let names = all.iter().map(|subject| subject.name.as_str()).collect::<Vec<_>>().join(", ");
    if let Some(name) = only.iter().find(|name| !all.iter().any(|it| it.name == **name)) {
        bail!("unknown build `{name}`; use one of: {names}");
    }
    Ok(all.into_iter().filter(|subject| only.is_empty() || only.contains(&subject.name)).collect())
}

impl Subject {
    /// Returns the folder of the manifest.
    fn project(&self) -> PathBuf {
        match &self.kind {
            Kind::Workspace(_) => process::root().to_owned(),
            Kind::Hello(_) => target_folder().join("build-time").join(&self.name),
            Kind::Peer(folder) => process::root().join(folder),
        }
    }

    /// Writes the project of hello world, and downloads the dependencies.
    pub(super) fn prepare(&self) -> Result<()> {
        if let Kind::Hello(transport) = self.kind {
            let project = self.project();
            // A missing folder is the usual case.
            let _ = fs::remove_dir_all(&project);
            fs::create_dir_all(&project).context("could not create a project")?;
            packaged::unpack(&project)?;
            packaged::write_hello(&project, transport)?;
        }
        if let Err(error) = process::run(&mut self.cargo(&["fetch", "--quiet"])) {
            eprintln!("{error}; the build downloads missing crates, and the download counts");
        }
        Ok(())
    }

    /// A cargo command with the default settings of a user.
    fn cargo(&self, words: &[&str]) -> std::process::Command {
        let mut cargo = process::cargo(words);
        cargo.arg("--manifest-path").arg(self.project().join("Cargo.toml"));
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
        match &self.kind {
            // Cargo never builds a crate of a registry incrementally, and hello world stands for a
            // project that takes ours from there. As a path it would be split into 256 units instead
            // of 16, and each unit repeats the debug information of the types that it uses.
            Kind::Hello(_) => cargo.env("CARGO_INCREMENTAL", "0"),
            Kind::Workspace(package) if words.first() != Some(&"fetch") => {
                cargo.args(["--locked", "--package", package])
            }
            Kind::Workspace(_) => cargo.arg("--locked"),
            Kind::Peer(_) => cargo.arg("--locked").env("CARGO_INCREMENTAL", "0"),
        };
        cargo
    }

    pub(super) fn build(&self, profile: &str) -> Result<Build> {
        let target = Folder::new()?;
        let mut cargo = self.cargo(&["build", "--quiet"]);
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
        Ok(Build { name, profile, seconds, cpu_seconds, crates: self.crates()?, bytes })
    }

    /// Number of crates that are built for this platform, except those of the workspace and except
    /// hello world itself.
    fn crates(&self) -> Result<usize> {
        let mut tree = self.cargo(&["tree", "--edges", "normal,build", "--prefix", "none"]);
        let tree = process::answer(&mut tree).context("`cargo tree` failed")?;
        Ok(match self.kind {
            Kind::Workspace(_) => external(&tree),
            Kind::Hello(_) | Kind::Peer(_) => distinct(tree.lines()) - 1,
        })
    }
}

/// Counts the external crates in the output of `cargo tree`, each version once.
pub(crate) fn external(tree: &str) -> usize {
    distinct(tree.lines().filter(|line| !line.contains("(/")))
}

fn distinct<'a>(lines: impl Iterator<Item = &'a str>) -> usize {
    let lines = lines.filter(|line| !line.trim().is_empty());
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

/// A target directory, deleted on drop. It is on the disk of the project, because memory may be too
/// small.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Self> {
        let folder = target_folder().join(format!("build-time-{}", std::process::id()));
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
    use super::{children_of, external, last_executable, subjects};

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
    fn unknown_build_is_rejected() {
        assert!(subjects(&["hallo".to_owned()], &[]).is_err());
        assert_eq!(subjects(&["hello".to_owned()], &[]).unwrap().len(), 1);
        assert_eq!(subjects(&[], &[]).unwrap().len(), 5);
    }
}
