//! The step `binary`: the stripped program in an archive with man pages, completions and licenses.
//! On Linux the program needs no shared libraries.

use std::env::consts::{ARCH, EXE_SUFFIX, OS};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::archive::{Entry, gzip, tar};
use super::artifacts::{Artifacts, VERSION};
use super::elf;
use super::payload::{LICENSES, Payload};
use xtask::process;

pub(super) fn run(artifacts: &mut Artifacts) -> Result<()> {
    let program = built()?;
    let payload = Payload::read(&program)?;
    let folder = format!("outlive-{VERSION}");
    let mut entries = vec![
        Entry::folder(&folder, 0o755, 0),
        Entry::program(&format!("{folder}/outlive{EXE_SUFFIX}"), fs::read(&program)?),
    ];
    for name in ["README.md"].iter().chain(LICENSES) {
        let text = fs::read(process::root().join(name)).with_context(|| format!("no {name}"))?;
        entries.push(Entry::file(&format!("{folder}/{name}"), text));
    }
    for (name, page) in &payload.man_pages {
        entries.push(Entry::file(&format!("{folder}/man/{name}"), page.clone()));
    }
    for (shell, script) in &payload.completions {
        let path = format!("{folder}/completions/{}", shell.file);
        entries.push(Entry::file(&path, script.clone()));
    }
    artifacts.write(&archive_name(ARCH, OS), &gzip(&tar(&entries)?)?)
}

/// Returns the name of the archive for a platform.
pub(super) fn archive_name(arch: &str, system: &str) -> String {
    format!("outlive-{VERSION}-{arch}-{system}.tar.gz")
}

/// Builds the program in the profile `dist` and returns its path.
pub(super) fn built() -> Result<PathBuf> {
    if OS == "linux" { built_static() } else { built_from(&mut dist_build()) }
}

fn built_static() -> Result<PathBuf> {
    let musl = format!("{ARCH}-unknown-linux-musl");
    let with_musl = has_musl(&musl);
    let target = if with_musl { musl } else { format!("{ARCH}-unknown-linux-gnu") };
    let libc = if with_musl { "musl" } else { "static glibc (musl is not installed)" };
    eprintln!("building the program for {target} with {libc}; the first time takes minutes");
    let mut build = dist_build();
    build.args(["--features", "secret-service", "--target", &target]);
    build.env("RUSTFLAGS", "-C target-feature=+crt-static");
    let program = built_from(&mut build)?;
    let bytes = fs::read(&program)?;
    ensure!(
        !elf::needs_loader(&bytes)?,
        "{} needs a dynamic loader; link it statically",
        program.display()
    );
    eprintln!("the program has {} bytes and no dynamic loader", bytes.len());
    Ok(program)
}

fn dist_build() -> Command {
    process::cargo(&["build", "--locked", "--profile", "dist", "--package", "outlive-cli"])
}

fn built_from(build: &mut Command) -> Result<PathBuf> {
    process::reported(build, "outlive")?.context("cargo did not report the binary `outlive`")
}

/// Whether the standard library and a C compiler for musl are installed.
fn has_musl(target: &str) -> bool {
    let mut library = Command::new("rustc");
    library.args(["--print", "target-libdir", "--target", target]);
    process::answer(&mut library).is_some_and(|path| PathBuf::from(path.trim()).exists())
        && process::answer(Command::new("musl-gcc").arg("--version")).is_some()
}
