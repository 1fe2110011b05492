//! Runs one leg: an upstream, a gateway, a client, and a record of both connections.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;

use super::evidence::{self, Connection};
use super::peers::Transport;
use super::plan::Leg;
use super::tools::{Tools, words};
use super::wire::{HttpTap, Seen, StdioLog};
use crate::gateway_process::GatewayProcess;
use crate::serving::Serving;

/// Longest time until a client reports its next feature.
const REPORT_TIMEOUT: Duration = Duration::from_secs(60);

/// Time for messages that a client sends without waiting for a response.
const LATE_MESSAGES: Duration = Duration::from_millis(500);

/// Settings of the tools that need a task at once.
const TOOLS: &str = r#"
[upstreams.peer.tools]
slow_compute = { task_after = "1ms" }
sample_in_task = { task = "always" }
test_partial_results = { task = "always" }
"#;

/// The record of the connection to the upstream.
enum Record {
    Http(HttpTap),
    Stdio(StdioLog),
}

impl Record {
    fn messages(&self) -> Vec<Seen> {
        match self {
            Self::Http(tap) => tap.messages(),
            Self::Stdio(log) => log.messages(),
        }
    }
}

/// The outcome of a function of the client script: the error, if it failed.
pub(super) type Report = (String, Option<String>);

/// The processes of a leg.
struct Running<'a> {
    leg: &'a Leg,
    client_side: HttpTap,
    upstream_side: Record,
    gateway: GatewayProcess,
    /// An upstream on a socket.
    _serving: Option<Serving>,
}

/// Runs a leg, with its files in `folder`. Returns one report per driver.
pub(super) fn run(tools: &Tools, leg: &Leg, folder: &Path) -> Result<Vec<Report>> {
    let running = Running::start(tools, leg, folder)?;
    let reports = running.play(tools, &folder.join("client.log"))?;
    running.save(folder)?;
    running.gateway.stop()?;
    if reports.iter().all(|(_, error)| error.is_none()) {
        fs::remove_dir_all(folder)?;
    }
    Ok(reports)
}

impl<'a> Running<'a> {
    fn start(tools: &Tools, leg: &'a Leg, folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder)?;
        let command = tools.upstream(leg)?;
        let (target, upstream_side, serving) = match leg.transports.1 {
            Transport::Stdio => over_stdio(tools, &command, folder.join("upstream.jsonl")),
            Transport::Http => over_http(command, "/mcp")?,
            Transport::HttpSse => over_http(command, "/sse")?,
        };
        let version = if leg.is_detected() { "auto" } else { leg.versions.1.name() };
        let config = format!(
            "[upstreams.peer]\n{target}\nprotocol_version = {version:?}\nprefix = \"\"\n{TOOLS}"
        );
        let gateway = GatewayProcess::start(&tools.program("outlive"), folder, &config)?;
        let client_side = HttpTap::start(gateway.address())?;
        Ok(Self { leg, client_side, upstream_side, gateway, _serving: serving })
    }

    /// Runs the client, and finds the evidence of each feature that it reports.
    fn play(&self, tools: &Tools, log: &Path) -> Result<Vec<Report>> {
        let path = match self.leg.transports.0 {
            Transport::HttpSse => "/sse",
            _ => "/mcp",
        };
        let mut command = tools.client(self.leg)?;
        command.arg(self.client_side.url(path));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(fs::File::create(log)?);
        let mut client = Client(command.spawn().context("could not start the client")?);
        let lines = client.lines()?;
        let mut reports = Vec::new();
        while reports.len() < self.leg.drivers.len() {
            let Ok(line) = lines.recv_timeout(REPORT_TIMEOUT) else {
                let error = format!("the client stopped; its last line: {}", last_line(log));
                reports.extend(self.unreported(&reports, &error));
                return Ok(reports);
            };
            let Ok(line) = serde_json::from_str::<Value>(&line) else { continue };
            let Some(driver) = line["feature"].as_str() else { continue };
            let error = match line["why"].as_str() {
                Some(error) => Some(shortened(error)),
                None => self.lost(driver),
            };
            reports.push((driver.to_owned(), error));
        }
        Ok(reports)
    }

    /// Writes the messages of both connections into files.
    fn save(&self, folder: &Path) -> Result<()> {
        let sides =
            [("client", self.client_side.messages()), ("upstream", self.upstream_side.messages())];
        for (side, messages) in sides {
            let lines = messages.iter().map(|seen| format!("{:?} {}\n", seen.sender, seen.message));
            fs::write(folder.join(format!("{side}.messages")), lines.collect::<String>())?;
        }
        Ok(())
    }

    /// Reports an error for every driver that the client did not report.
    fn unreported(&self, reports: &[Report], error: &str) -> Vec<Report> {
        let is_reported = |driver: &str| reports.iter().any(|(name, _)| name == driver);
        let rest = self.leg.drivers.iter().filter(|driver| !is_reported(driver));
        rest.map(|driver| ((*driver).to_owned(), Some(error.to_owned()))).collect()
    }

    /// Returns which message of a feature was not seen.
    fn lost(&self, driver: &str) -> Option<String> {
        let lost = self.unseen(driver);
        if lost.is_some() {
            thread::sleep(LATE_MESSAGES);
            return self.unseen(driver);
        }
        lost
    }

    fn unseen(&self, driver: &str) -> Option<String> {
        let sides = [
            (Connection::Client, self.leg.versions.0, self.client_side.messages(), "client"),
            (Connection::Upstream, self.leg.versions.1, self.upstream_side.messages(), "upstream"),
        ];
        sides.into_iter().find_map(|(side, version, messages, name)| {
            if let Some(wrong) = evidence::wrong_version(version, &messages) {
                return Some(format!("{name}: {wrong}"));
            }
            let lost = evidence::missing(&evidence::of(driver, version, side), &messages)?;
            Some(format!("{name}: {lost} was not seen"))
        })
    }
}

/// The start of an error.
fn shortened(error: &str) -> String {
    error.lines().next().unwrap_or_default().chars().take(300).collect()
}

/// The last line of a log that is not empty.
fn last_line(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("none").to_owned()
}

/// The client process, killed on drop.
struct Client(Child);

impl Client {
    /// The lines of its standard output.
    fn lines(&mut self) -> Result<mpsc::Receiver<String>> {
        let stdout = self.0.stdout.take().context("the client has a standard output")?;
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(receiver)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // The process may have exited already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The keys, the record and the process of an upstream.
type Upstream = (String, Record, Option<Serving>);

fn over_stdio(tools: &Tools, command: &Command, record: PathBuf) -> Upstream {
    let tap = tools.program("wire-tap").display().to_string();
    let mut all = vec![tap, record.display().to_string()];
    all.extend(words(command));
    (format!("command = {all:?}"), Record::Stdio(StdioLog(record)), None)
}

fn over_http(command: Command, path: &str) -> Result<Upstream> {
    let serving = Serving::start(command)?;
    let address = serving.url.trim_start_matches("http://").split('/').next().unwrap_or_default();
    let address: SocketAddr = address.parse().context("a server has an address")?;
    let tap = HttpTap::start(address)?;
    let url = tap.url(path);
    Ok((format!("url = {url:?}"), Record::Http(tap), Some(serving)))
}
