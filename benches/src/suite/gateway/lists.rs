//! Lists of many upstreams: a warm page, the first list, the list with search, and the start.

use std::{
    io::{BufRead, BufReader, Write},
    net::{SocketAddr, TcpStream},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::{
    child::Server,
    load::{
        http::{connect, exchange},
        paced::percentile,
    },
    machine::{Cores, children_of},
    messages::{
        INITIALIZE, INITIALIZED, LIST_TOOLS, LIST_TOOLS_HEADERS, http_request, list_tools_after,
    },
    peers::Peers,
    program::{Gateway, upstream_command},
    report::{Bar, Report},
    slices::Spread,
    suite::Plan,
};

const UPSTREAMS: usize = 10;
const TOOLS_EACH: usize = 30;
const MANY_UPSTREAMS: usize = 20;

/// Warm pages that are read.
const PAGES: usize = 1_000;

/// Bytes of a token, as estimated for English text and JSON.
const TOKEN_BYTES: f64 = 4.0;

pub(in crate::suite) fn measure(
    plan: &Plan,
    _: &Peers,
    cores: Cores,
    report: &mut Report,
) -> Result<()> {
    let tools = UPSTREAMS * TOOLS_EACH;
    report.title(&format!("Lists of {tools} tools of {UPSTREAMS} upstreams on stdio"));
    let rounds = (plan.rounds / 4).max(3);
    eprintln!("measuring first lists");
    let (mut added, mut first, mut direct) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        let slowest = slowest_start(cores)?;
        let gateway = Gateway::start(&upstreams(UPSTREAMS, "")?, cores)?;
        let cold = cold_list(gateway.address)?;
        added.push(millis(cold) - millis(slowest));
        first.push(millis(cold));
        direct.push(millis(slowest));
    }
    let gateway = Gateway::start(&upstreams(UPSTREAMS, "")?, cores)?;
    cold_list(gateway.address)?;
    eprintln!("measuring warm pages");
    let pages = warm_pages(gateway.address)?;
    drop(gateway);
    let search = Gateway::start(&upstreams(UPSTREAMS, "discovery = \"search\"\n")?, cores)?;
    let tokens = list(&mut connect(search.address)?, None)?.len() as f64 / TOKEN_BYTES;
    drop(search);
    let starts: Vec<f64> = (0..rounds).map(|_| start(cores)).collect::<Result<_>>()?;

    let [added, first, direct] = [added, first, direct].map(|all| Spread::of(all).median);
    let warm = millis(percentile(&pages, 50.0));
    let started = Spread::of(starts).median;
    report.figure("a warm page of 100 tools, median", warm, " ms");
    report.figure("a warm page of 100 tools, p99", millis(percentile(&pages, 99.0)), " ms");
    report.figure("the first list, which starts all upstreams", first, " ms");
    report.figure("slowest of the upstreams, started at once without the gateway", direct, " ms");
    report.figure("the list with search", tokens, " tokens of 4 bytes");
    report.figure(&format!("start with {MANY_UPSTREAMS} upstreams"), started, " ms");
    report.bar(Bar::at_most("a warm page of 100 tools", Some(warm), 1.0, " ms"));
    let name = "the first list, beyond the slowest upstream";
    report.bar(Bar::at_most(name, Some(added), 300.0, " ms"));
    report.bar(Bar::at_most("the list with search", Some(tokens), 2_000.0, " tokens"));
    let name = "start with 20 upstreams and 0 processes until it listens";
    report.bar(Bar::at_most(name, Some(started), 100.0, " ms"));
    Ok(())
}

/// Returns a file with upstreams on stdio, and keys of `[gateway]`.
fn upstreams(count: usize, gateway: &str) -> Result<String> {
    let command = upstream_command(&["outlive-tools-stdio", &TOOLS_EACH.to_string()])?;
    let mut text = format!("[gateway]\nlist_wait = \"30s\"\n{gateway}");
    for number in 0..count {
        text.push_str(&format!("[upstreams.bench-{number}]\ncommand = {command}\n"));
    }
    Ok(text)
}

/// Returns the body of the response to `tools/list`.
fn list(stream: &mut TcpStream, cursor: Option<&str>) -> Result<String> {
    let body = match cursor {
        Some(cursor) => list_tools_after(cursor),
        None => LIST_TOOLS.to_owned(),
    };
    let answer = exchange(stream, &http_request("POST", "/mcp", LIST_TOOLS_HEADERS, &body))?;
    ensure!(answer.status == 200, "`tools/list` got {}: {}", answer.status, answer.text());
    Ok(answer.text())
}

/// Returns the time of the first page, and checks that the list is complete.
fn cold_list(address: SocketAddr) -> Result<Duration> {
    let mut stream = connect(address)?;
    let begun = Instant::now();
    let mut page = list(&mut stream, None)?;
    let time = begun.elapsed();
    let mut tools = 0;
    loop {
        let read: Value = serde_json::from_str(&page)?;
        let listed = read["result"]["tools"].as_array().context("a page without tools")?;
        tools += listed.len();
        match read["result"]["nextCursor"].as_str() {
            Some(cursor) => page = list(&mut stream, Some(cursor))?,
            None => break,
        }
    }
    ensure!(tools == UPSTREAMS * TOOLS_EACH, "the list has {tools} tools");
    Ok(time)
}

fn warm_pages(address: SocketAddr) -> Result<Vec<Duration>> {
    let mut stream = connect(address)?;
    list(&mut stream, None)?;
    let page = |_| {
        let begun = Instant::now();
        list(&mut stream, None)?;
        anyhow::Ok(begun.elapsed())
    };
    (0..PAGES).map(page).collect()
}

/// Starts the upstreams at once, without the gateway. Returns the time until the last has listed
/// its tools.
fn slowest_start(cores: Cores) -> Result<Duration> {
    let begun = Instant::now();
    let mut started = Vec::new();
    for _ in 0..UPSTREAMS {
        let (server, mut stdin, stdout) =
            Server::piped_counting("outlive-tools-stdio", TOOLS_EACH, cores)?;
        let list = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;
        stdin.write_all(format!("{INITIALIZE}\n{INITIALIZED}\n{list}\n").as_bytes())?;
        started.push((server, stdin, BufReader::new(stdout)));
    }
    for (_, _, stdout) in &mut started {
        let mut line = String::new();
        while !line.contains(r#""id":2"#) {
            line.clear();
            ensure!(stdout.read_line(&mut line)? > 0, "an upstream closed its output");
        }
    }
    Ok(begun.elapsed())
}

/// Starts the gateway with many upstreams. Returns the milliseconds until it listens.
fn start(cores: Cores) -> Result<f64> {
    let gateway = Gateway::start(&upstreams(MANY_UPSTREAMS, "")?, cores)?;
    let processes = children_of(gateway.server.pid())?.len() + gateway.supervisors()?.len();
    ensure!(processes == 0, "the gateway started {processes} processes before they are used");
    Ok(millis(gateway.listening_after))
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
