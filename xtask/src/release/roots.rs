//! The step `roots`: starts the program in a Debian root and in an Alpine-like root.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::artifacts::{Artifacts, empty_folder};
use super::{binary, smoke};
use xtask::packages;
use xtask::process::{self, target_folder};

/// Debian packages that form an Alpine-like root: Alpine has musl and busybox in place of glibc and
/// the GNU tools.
const ALPINE_LIKE: &[&str] = &["busybox-static", "musl"];

pub(super) fn run(_artifacts: &mut Artifacts) -> Result<()> {
    let program = binary::built()?;
    let debian = debian()?;
    eprintln!("starting the program in {}", release_of(&debian)?);
    fs::copy(&program, debian.join("outlive"))?;
    smoke::check_in_root(&debian, "/outlive", None)?;
    let alpine = alpine_like()?;
    eprintln!("starting the program in an Alpine-like root (Debian's musl and busybox)");
    fs::copy(&program, alpine.join("outlive"))?;
    smoke::check_in_root(&alpine, "/outlive", None)
}

/// Returns the root of Debian stable. The first run makes it with debootstrap, and later runs reuse it.
pub(super) fn debian() -> Result<PathBuf> {
    let root = target_folder().join("release-debian");
    let complete = target_folder().join("release-debian.complete");
    if complete.exists() && root.exists() {
        return Ok(root);
    }
    ensure!(packages::is_root(), "debootstrap needs root; run this step as root");
    let debootstrap = packages::ensure(&packages::DEBOOTSTRAP)?;
    eprintln!("making a Debian stable root with debootstrap; takes a minute or two");
    let root = empty_folder("release-debian")?;
    let log = fs::File::create(target_folder().join("release-debian.log"))?;
    let mut make = Command::new(debootstrap);
    make.args(["--variant=minbase", "stable"]).arg(&root).stdout(log);
    process::run(&mut make).context("target/release-debian.log has the output")?;
    fs::write(complete, "")?;
    Ok(root)
}

/// Returns the name of a root's Debian release.
fn release_of(root: &Path) -> Result<String> {
    let text =
        fs::read_to_string(root.join("etc/os-release")).context("the root has no release")?;
    let name = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    Ok(name.unwrap_or("an unknown release").trim_matches('"').to_owned())
}

/// Unpacks musl and busybox from Debian packages, because no package registry has Alpine's root.
fn alpine_like() -> Result<PathBuf> {
    let root = empty_folder("release-alpine")?;
    let downloads = empty_folder("release-alpine-packages")?;
    let mut download = Command::new("apt-get");
    download.args(["--quiet=2", "download"]).args(ALPINE_LIKE).current_dir(&downloads);
    process::run(&mut download)?;
    for entry in fs::read_dir(&downloads)? {
        process::run(Command::new("dpkg-deb").arg("--extract").arg(entry?.path()).arg(&root))?;
    }
    process::run(Command::new("ln").args(["-s", "busybox"]).arg(root.join("bin/sh")))?;
    Ok(root)
}
