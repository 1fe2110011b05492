//! Cold start: from the start of a process to the response of its first call. All targets start in
//! turn, round after round, with warm file caches.

use std::{
    io::{BufRead, BufReader, Write},
    net::SocketAddr,
    path::PathBuf,
};

use anyhow::{Context, Result, ensure};
use memchr::memmem;

use super::Plan;
use crate::{
    child::Server,
    load::http::{connect, exchange},
    machine::{Cores, Watch, cpu_of, own_pid},
    messages::{MODERN_CALL_HEADERS, TEXT, http_request, modern_call},
    peers::{Peers, Serves},
    report::Report,
    slices::{Series, Slice},
};

/// Starts a server, makes one call, and returns the server.
type Start<'a> = Box<dyn Fn() -> Result<Server> + 'a>;

pub(super) fn measure(plan: &Plan, peers: &Peers, cores: Cores, report: &mut Report) -> Result<()> {
    let ours: PathBuf = std::env::current_exe().context("could not find this program")?;
    let listening = |name: &'static str| -> Start<'_> {
        let program = &ours;
        Box::new(move || {
            let (server, address, _) = Server::start_listening(program, &["serve", name], cores)?;
            call(address, "/mcp")?;
            Ok(server)
        })
    };
    let piped = |name: &'static str| -> Start<'_> { Box::new(move || on_a_pipe(name, cores)) };
    let mut all = vec![
        ("bare axum, HTTP".to_owned(), listening("control-http")),
        ("Outlive, HTTP".to_owned(), listening("outlive-http")),
        ("blocking loop, stdio".to_owned(), piped("control-stdio")),
        ("Outlive, stdio".to_owned(), piped("outlive-stdio")),
    ];
    let words = ["calls".to_owned(), "1".to_owned()];
    for peer in peers.serving(Serves::Calls, "2026-07-28") {
        let words = words.clone();
        let start: Start<'_> = Box::new(move || {
            let serving = peer.serve(&words, cores)?;
            call(serving.address, &peer.path)?;
            Ok(serving.server)
        });
        // One unmeasured start: it fills the file cache, and a peer that fails is skipped.
        if peers.keep(&peer.label(), start().map(drop)).is_some() {
            all.push((format!("{}, HTTP", peer.label()), start));
        }
    }
    eprintln!("measuring cold starts");
    let mut series: Vec<Series> =
        all.iter().map(|(name, _)| Series { name: name.clone(), slices: Vec::new() }).collect();
    for (name, start) in &all[..4] {
        start().with_context(|| name.clone())?;
    }
    for round in 0..plan.rounds {
        let mut turns: Vec<_> = all.iter().zip(&mut series).collect();
        if round % 2 == 1 {
            turns.reverse();
        }
        for ((name, start), series) in turns {
            series.slices.push(slice(start).with_context(|| name.clone())?);
        }
    }
    tell(&series, report);
    Ok(())
}

fn slice(start: &Start<'_>) -> Result<Slice> {
    let watch = Watch::begin(vec![own_pid()], None)?;
    let server = start()?;
    let seen = watch.end()?;
    let cpu = cpu_of(server.pid())?;
    // The server did not exist when the watch started, so its time was counted as that of other
    // processes.
    let others = seen.others - cpu.as_secs_f64() / seen.elapsed.as_secs_f64();
    Ok(Slice {
        cpu: cpu.as_secs_f64() * 1e6,
        rate: 1.0 / seen.elapsed.as_secs_f64(),
        foreign: others.max(0.0) + seen.stolen,
    })
}

fn tell(series: &[Series], report: &mut Report) {
    let [control, ours, control_pipe, ours_pipe, peers @ ..] = series else { return };
    let millis = |slice: &Slice| 1_000.0 / slice.rate;
    report.title("Cold start, from the start of the process to the first response");
    report.ratio("Outlive / bare axum, HTTP (time)", ours.ratio(control, millis));
    report.ratio("Outlive / blocking loop, stdio (time)", ours_pipe.ratio(control_pipe, millis));
    for peer in peers {
        report.ratio(&format!("{} / Outlive (time)", peer.name), peer.ratio(ours, millis));
    }
    for one in series {
        report.figure(&one.name, one.spread(millis).median, " ms");
    }
    report.series(series);
    report.say(
        "The system counts busy time in ticks of 10 ms, so the CPU share of other processes is \
         inexact for shorter starts.",
    );
}

fn call(address: SocketAddr, path: &str) -> Result<()> {
    let request = http_request("POST", path, MODERN_CALL_HEADERS, &modern_call());
    let answer = exchange(&mut connect(address)?, &request)?;
    let text = answer.text();
    ensure!(answer.status == 200 && text.contains(TEXT), "response {}: {text}", answer.status);
    Ok(())
}

fn on_a_pipe(name: &str, cores: Cores) -> Result<Server> {
    let (mut server, mut stdin, stdout) = Server::piped(name, cores)?;
    stdin.write_all(format!("{}\n", modern_call()).as_bytes())?;
    let mut line = Vec::new();
    BufReader::new(stdout).read_until(b'\n', &mut line)?;
    let is_answer = memmem::find(&line, TEXT.as_bytes()).is_some();
    ensure!(is_answer, "answered: {}", String::from_utf8_lossy(&line));
    // The server would exit before its processor time is read.
    server.keep_open(stdin);
    Ok(server)
}
