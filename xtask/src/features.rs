//! `cargo xtask features`: each feature of `outlive` alone, none and all compile without warnings
//! and have the expected number of crates.
//!
//! The tests of `outlive-schema` also run without `json-schema`, which the tests of the workspace
//! enable. Code for Windows is type-checked if rustup has the target.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use xtask::args::Args;
use xtask::process;

use crate::build_time::external;

/// Allowed difference of a crate count from the table, because versions of dependencies change.
const TOLERANCE: usize = 2;

/// Feature sets of `outlive`, and the number of their external crates on Linux. The default set
/// comes first.
const SETS: &[(&str, usize)] = &[
    ("http,macros,server,tower", 64),
    ("", 49),
    ("server", 52),
    ("client", 53),
    ("http", 60),
    ("macros", 49),
    ("tower", 54),
    ("testing", 52),
    ("anyhow", 53),
    ("json-schema", 98),
    ("skills", 53),
    ("sqlite", 65),
    ("postgres", 102),
    ("tls", 82),
    ("webhooks", 86),
    ("auth", 78),
    ("auth-proxy", 78),
    ("keyring", 78),
    ("secret-service", 129),
    ("client,http", 70),
];

/// Limits of the crates of a server over HTTP and of one on stdio.
const MOST: [(&str, usize); 2] = [("http,macros,server,tower", 80), ("server", 70)];

const LINUX: &str = "x86_64-unknown-linux-gnu";
const WINDOWS: &str = "x86_64-pc-windows-gnu";

pub(crate) fn run(args: Args) -> Result<()> {
    args.finish()?;
    if let Some(note) = check()? {
        println!("{note}");
    }
    Ok(())
}

/// Checks all sets. Returns a note about skipped checks.
pub(crate) fn check() -> Result<Option<String>> {
    let mut moved = Vec::new();
    for (features, known) in SETS {
        compile(&["--package", "outlive", "--no-default-features", "--features", features])?;
        let crates = count(features)?;
        println!("{:<20} {crates:>3} crates, {known} in the table", shown(features));
        if crates.abs_diff(*known) > TOLERANCE {
            moved.push(format!("`{}` has {crates} crates, not {known}", shown(features)));
        }
        if let Some((_, most)) = MOST.iter().find(|(set, _)| set == features) {
            ensure!(crates <= *most, "`{features}` has {crates} crates, limit {most}");
        }
    }
    ensure!(
        moved.is_empty(),
        "{}; change the table in {} if the crates are worth it",
        moved.join("; "),
        file!()
    );
    compile(&["--package", "outlive", "--all-features"])?;
    // This feature enables additional tests of the program.
    compile(&["--package", "outlive-cli", "--features", "secret-service", "--tests"])?;
    process::run(&mut process::cargo(&[
        "test",
        "--quiet",
        "--package",
        "outlive-schema",
        "--lib",
    ]))?;
    windows()
}

fn shown(features: &str) -> &str {
    if features.is_empty() { "(none)" } else { features }
}

/// Type-checks; a warning is an error.
fn compile(args: &[&str]) -> Result<()> {
    let mut cargo = process::cargo(&["check", "--quiet"]);
    without_warnings(cargo.args(args))
}

fn without_warnings(cargo: &mut Command) -> Result<()> {
    let shown = process::shown(cargo);
    let output = cargo.stdin(Stdio::null()).stdout(Stdio::inherit()).output();
    let output = output.with_context(|| format!("could not start `{shown}`"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() || said.lines().any(|line| line.starts_with("warning")) {
        bail!("`{shown}`: {}\n{said}", output.status);
    }
    Ok(())
}

/// Number of external crates of `outlive` with exactly these features.
fn count(features: &str) -> Result<usize> {
    let tree = ["tree", "--package", "outlive", "--edges", "normal,build", "--prefix", "none"];
    let mut tree = process::cargo(&tree);
    tree.args(["--target", LINUX, "--no-default-features", "--features", features]);
    Ok(external(&process::answer(&mut tree).context("`cargo tree` failed")?))
}

/// Type-checks the client and the server for Windows. Nothing is linked, so a stub replaces the C
/// compiler.
fn windows() -> Result<Option<String>> {
    let added = process::answer(Command::new("rustup").args(["target", "add", WINDOWS]));
    if added.is_none() || !cfg!(unix) {
        return Ok(Some(format!(
            "features: skipped the type-check for {WINDOWS}: `rustup target add {WINDOWS}` failed"
        )));
    }
    let mut cargo =
        process::cargo(&["check", "--quiet", "--package", "outlive", "--target", WINDOWS]);
    let target = WINDOWS.replace('-', "_");
    cargo.args(["--features", "client,tls"]);
    cargo.env(format!("CC_{target}"), "true").env(format!("AR_{target}"), "true");
    without_warnings(&mut cargo)?;
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs};

    use xtask::process;

    use super::SETS;

    #[test]
    fn feature_table_contains_every_feature_of_manifest() {
        let manifest =
            fs::read_to_string(process::root().join("crates/outlive/Cargo.toml")).unwrap();
        let manifest: toml::Table = manifest.parse().unwrap();
        let features = manifest["features"].as_table().unwrap().keys();
        let named: BTreeSet<&str> =
            features.map(String::as_str).filter(|it| *it != "default").collect();
        let alone: BTreeSet<&str> = SETS
            .iter()
            .map(|(set, _)| *set)
            .filter(|set| !set.is_empty() && !set.contains(','))
            .collect();
        assert_eq!(named, alone);
    }
}
