//! `cargo xtask views`: the task view in a real browser, under the official host of MCP Apps.
//!
//! The page runs in a sandboxed frame under `AppBridge`, whose client is the official one for
//! TypeScript, connected to `view-server`. Everything else is in `conformance/views`; its
//! `legs.mjs` lists the legs and their bars. Without a browser the command skips all legs with a
//! message; in continuous integration it fails.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::{env, fs};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use serde_json::json;
use xtask::args::Args;
use xtask::packages::{self, CHROMIUM};
use xtask::process::{self, Build};

use crate::conformance::suite::{self, Suite};

/// The result of a leg.
#[derive(Debug, Deserialize)]
struct Played {
    leg: String,
    seconds: String,
    /// Measured values.
    note: String,
    /// The error, if it failed.
    why: Option<String>,
}

pub(crate) fn run(mut args: Args) -> Result<()> {
    let build = Build::wanted(&mut args);
    let only = args.values("--only")?;
    args.finish()?;
    let chromium = match packages::ensure(&CHROMIUM) {
        Ok(chromium) => chromium,
        Err(why) if env::var_os("CI").is_some_and(|ci| !ci.is_empty() && ci != "false") => {
            return Err(why.context("`views` needs a browser, and CI is set"));
        }
        Err(why) => {
            eprintln!("\n*** NOT RUN, and not counted as a failure: views. {why:#} ***\n");
            return Ok(());
        }
    };
    let server = process::built("testbench", "view-server", build)?;
    let conformance = process::root().join("conformance");
    // The node version of the suite is new enough for these scripts.
    let node = Suite::ready(&conformance)?.node().to_owned();
    let folder = conformance.join("views");
    suite::install_once(&folder, suite::LENIENTLY)?;
    let pictures = target().join("views");
    fs::create_dir_all(&pictures)?;
    let settings =
        json!({"chromium": chromium, "server": server, "pictures": pictures, "only": only});
    let mut script = Command::new(node);
    script.arg("main.mjs").arg(settings.to_string()).current_dir(&folder);
    let played = play(script)?;
    for Played { leg, note, why, .. } in &played {
        println!("{} {leg:<38} {note}", if why.is_none() { "✓" } else { "✗" });
    }
    println!("views: pictures in {}", pictures.display());
    let wrong: Vec<String> = played
        .iter()
        .filter_map(|it| it.why.as_ref().map(|why| format!("{}: {why}", it.leg)))
        .collect();
    ensure!(wrong.is_empty(), "{} legs failed:\n{}", wrong.len(), wrong.join("\n"));
    Ok(())
}

fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| process::root().join("target"), PathBuf::from)
}

/// Runs the script to its end. The script and its processes end with its standard input.
fn play(mut script: Command) -> Result<Vec<Played>> {
    let mut child = script
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("could not start node")?;
    let out = child.stdout.take().context("the script has no output")?;
    let mut played = Vec::new();
    for line in BufReader::new(out).lines() {
        let line = line?;
        let Ok(it) = serde_json::from_str::<Played>(&line) else { bail!("invalid line {line}") };
        let how = if it.why.is_some() { "FAILED" } else { "ok" };
        eprintln!("views: {}: {how} after {} s", it.leg, it.seconds);
        played.push(it);
    }
    let status = child.wait()?;
    ensure!(status.success(), "the script of the views failed: {status}");
    ensure!(!played.is_empty(), "no leg ran");
    Ok(played)
}
