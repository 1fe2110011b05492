//! `cargo xtask program`: size and startup cost of the published program.
//!
//! The cost is the processor time of all threads from the start until the response to `tools/list`,
//! because a host starts its servers each time it starts. Wall-clock time would depend on the load
//! of the machine.

use std::{
    env, fs,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};

use xtask::{args::Args, process};

const LARGEST_MB: f64 = 25.0;
const LONGEST_MS: f64 = 30.0;
const STARTS: usize = 20;

const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;

pub(crate) fn run(args: Args) -> Result<()> {
    args.finish()?;
    process::run(&mut process::cargo(&["build", "--profile", "dist", "--package", "outlive-cli"]))?;
    let target = env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| process::root().join("target"), PathBuf::from);
    let program = target.join("dist/outlive");
    let folder = env::temp_dir().join(format!("outlive-program-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let measured = measure(&program, &folder);
    fs::remove_dir_all(&folder)?;
    let (megabytes, first, mut later) = measured?;
    later.sort_by(f64::total_cmp);
    let (median, longest) = (later[later.len() / 2], later[later.len() - 1]);
    println!("size, stripped               {megabytes:.1} MB (at most {LARGEST_MB})");
    println!("first start, with a new store {first:.1} ms on a processor");
    println!(
        "later starts, {STARTS} of them      median {median:.1} ms, longest {longest:.1} ms (at most {LONGEST_MS})"
    );
    if megabytes > LARGEST_MB || longest > LONGEST_MS || first > LONGEST_MS {
        bail!("a limit is exceeded; find the cause with `cargo bloat` and `perf record`");
    }
    Ok(())
}

fn measure(program: &Path, folder: &Path) -> Result<(f64, f64, Vec<f64>)> {
    let stripped = folder.join("outlive");
    process::run(Command::new("strip").arg("-o").arg(&stripped).arg(program))?;
    let megabytes = fs::metadata(&stripped)?.len() as f64 / 1e6;
    let first = start(&stripped, folder)?;
    let later = (0..STARTS).map(|_| start(&stripped, folder)).collect::<Result<_>>()?;
    Ok((megabytes, first, later))
}

/// Starts the program, requests its tools, and returns the milliseconds.
fn start(program: &Path, folder: &Path) -> Result<f64> {
    let mut server = Command::new(program)
        .args(["serve", "--stdio", "--data-dir"])
        .arg(folder.join("data"))
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let mut stdin = server.stdin.take().context("standard input is piped")?;
    writeln!(stdin, "{LIST}")?;
    let mut answer = String::new();
    BufReader::new(server.stdout.take().context("standard output is piped")?)
        .read_line(&mut answer)?;
    let spent = processor_time(server.id())?;
    drop(stdin);
    server.wait()?;
    if !answer.contains("countdown") {
        bail!("the program did not list its tools: {answer}");
    }
    Ok(spent)
}

/// Processor time of all threads, from the scheduler. Ended threads do not count; the program ends
/// none before it serves.
fn processor_time(process: u32) -> Result<f64> {
    let mut nanos = 0_u64;
    for thread in fs::read_dir(format!("/proc/{process}/task"))? {
        let counted = fs::read_to_string(thread?.path().join("schedstat"))?;
        let spent =
            counted.split_whitespace().next().context("the scheduler counts processor time")?;
        nanos += spent.parse::<u64>()?;
    }
    Ok(nanos as f64 / 1e6)
}
