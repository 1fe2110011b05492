//! The step `packages`: packages every published crate, and runs hello world in an empty project
//! that depends on the packages alone.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::artifacts::{Artifacts, VERSION, empty_folder};
use crate::packaged::{self, Transport};
use xtask::process::{self, target_folder};

pub(super) fn run(artifacts: &mut Artifacts) -> Result<()> {
    let project = empty_folder("release-packages")?;
    for (file, bytes) in packaged::unpack(&project)? {
        artifacts.write(&file, &bytes)?;
    }
    let program = built_hello(&project)?;
    let name = greeted(&program)?;
    eprintln!("hello world from the packages initialized: server `{name}`");
    Ok(())
}

/// Builds hello world in a project that finds our crates only as unpacked packages.
fn built_hello(project: &Path) -> Result<PathBuf> {
    eprintln!("building hello world from the packages");
    packaged::write_hello(project, Transport::Stdio)?;
    let mut build = process::cargo(&["build", "--quiet", "--manifest-path"]);
    build.arg(project.join("Cargo.toml"));
    // Outside of the project, so that the next run reuses the build of other crates.
    build.arg("--target-dir").arg(target_folder().join("release-packages-target"));
    build.env_remove("RUSTFLAGS").env("CARGO_INCREMENTAL", "0");
    build.env("CARGO_PROFILE_DEV_DEBUG", "0");
    process::reported(&mut build, "hello")?.context("cargo did not report the binary `hello`")
}

/// Sends `initialize` over stdio and returns the name of the server.
fn greeted(program: &Path) -> Result<String> {
    let mut hello = Command::new(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("could not start hello world")?;
    let request = json!({
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": { "name": "xtask", "version": VERSION },
        },
    });
    let mut input = hello.stdin.take().context("hello world has no input")?;
    let output = hello.stdout.take().context("hello world has no output")?;
    writeln!(input, "{request}").context("hello world does not read")?;
    let mut line = String::new();
    BufReader::new(output).read_line(&mut line).context("hello world does not write")?;
    // The end of the input stops the server.
    drop(input);
    let status = hello.wait()?;
    ensure!(status.success(), "hello world failed: {status}");
    let response: Value = serde_json::from_str(&line)
        .with_context(|| format!("hello world wrote no JSON, but `{}`", line.trim()))?;
    let name = response["result"]["serverInfo"]["name"].as_str();
    name.map(str::to_owned).with_context(|| format!("`initialize` failed: {}", line.trim()))
}
