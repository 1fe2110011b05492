//! A client that repeats one call until it has the result.

use std::io::{self, BufReader, ErrorKind};
use std::net::{Shutdown, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use super::site::Site;
use crate::crash::http::Response;
use crate::crash::random::Random;
use crate::hosts::caller::{Caller, last, pending_task, text};
use crate::hosts::home::ALICE;

/// Timeout of a request that does not simulate a timeout.
const PATIENCE: Duration = Duration::from_secs(20);
/// Maximum duration of a run.
const RUN: Duration = Duration::from_secs(120);
/// Time in which a server ends a connection whose client has left.
const GOODBYE: Duration = Duration::from_secs(2);
/// Percentage of requests with a short timeout, of calls that repeat the tool instead of
/// `task_result`, and of runs that repeat the call after its result.
const SHORT_TIMEOUTS: usize = 25;
const REPEATED_TOOL: usize = 40;
const LATER: usize = 8;
/// Short timeouts of one run.
const MAX_TIMEOUTS: usize = 2;

/// The interruptions of a run, by their moment.
#[derive(Debug, Default)]
pub(super) struct Interruptions {
    /// Kills from the promoting commit until the reply is flushed.
    pub(super) kills: usize,
    /// Timeouts of the client in the same time.
    pub(super) timeouts: usize,
    /// Earlier or later ones.
    pub(super) outside: usize,
}

/// A run and its outcome.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) key: String,
    pub(super) interruptions: Interruptions,
    /// Why the run has no result.
    pub(super) error: Option<String>,
}

impl Run {
    /// Whether the run was interrupted, and only inside.
    pub(super) fn is_inside(&self) -> bool {
        let Interruptions { kills, timeouts, outside } = self.interruptions;
        kills + timeouts > 0 && outside == 0
    }
}

/// The outcome of one request.
enum Attempt {
    Reply(Value),
    /// The session is unknown.
    NoSession,
    /// The request was not sent.
    NotSent,
    /// The client left at its timeout.
    TimedOut,
    /// The connection was lost.
    Lost,
}

/// A client of one era.
pub(super) struct Client<'s, 'h> {
    site: &'s Site<'h>,
    random: Random,
    is_legacy: bool,
    caller: Option<Caller>,
}

impl<'s, 'h> Client<'s, 'h> {
    pub(super) fn new(site: &'s Site<'h>, random: Random, is_legacy: bool) -> Self {
        Self { site, random, is_legacy, caller: None }
    }

    /// Calls the tool until its result is here.
    pub(super) fn run(&mut self, key: String) -> Run {
        let mut interruptions = Interruptions::default();
        let outcome = self.insist(&key, &mut interruptions);
        Run { key, interruptions, error: outcome.err().map(|error| format!("{error:#}")) }
    }

    fn insist(&mut self, key: &str, interruptions: &mut Interruptions) -> Result<()> {
        let step = self.random.millis(30..300).as_secs_f64();
        let call = json!({"name": "render", "arguments": {"key": key, "step": step}});
        let repeats_later = self.random.percent(LATER);
        // The tasks of earlier results do not count as the task of this attempt.
        let (mut params, mut results) = (call.clone(), 0);
        let started = Instant::now();
        while started.elapsed() < RUN {
            let Some((process, caller)) = self.connect()? else {
                thread::sleep(Duration::from_millis(5));
                continue;
            };
            let may_leave = interruptions.timeouts < MAX_TIMEOUTS;
            let timeout = if may_leave && self.random.percent(SHORT_TIMEOUTS) {
                self.random.millis(400..1_500)
            } else {
                PATIENCE
            };
            match attempt(&caller, params.clone(), timeout) {
                Attempt::Reply(reply) => match self.next(&reply, key, &call)? {
                    Some(next) => params = next,
                    // The reply is flushed; the client behaves as if it had lost it.
                    None if repeats_later && results == 0 => {
                        results = 1;
                        interruptions.outside += 1;
                        params = call.clone();
                    }
                    None => return Ok(()),
                },
                Attempt::NoSession => self.caller = None,
                Attempt::NotSent => thread::sleep(Duration::from_millis(5)),
                Attempt::TimedOut => {
                    let tasks = self.site.commits.count()?.get(key).copied().unwrap_or(0);
                    interruptions.timeouts += usize::from(tasks > results);
                    interruptions.outside += usize::from(tasks <= results);
                    params = call.clone();
                }
                Attempt::Lost => {
                    let tasks = self.site.tasks_at_kill(process, key)?;
                    interruptions.kills += usize::from(tasks > results);
                    interruptions.outside += usize::from(tasks <= results);
                    params = call.clone();
                }
            }
        }
        bail!("no result after {} s", RUN.as_secs());
    }

    /// Returns the running process and a caller for it; `None` while the server is down.
    fn connect(&mut self) -> Result<Option<(u64, Caller)>> {
        let Some((process, address)) = self.site.current() else { return Ok(None) };
        let caller = match self.caller.take() {
            Some(caller) => caller.at(address),
            None if !self.is_legacy => Caller::modern(address, Some(ALICE)),
            // The server may be killed during the handshake.
            None => match Caller::legacy(address, Some(ALICE)) {
                Ok(caller) => caller,
                Err(_) => return Ok(None),
            },
        };
        self.caller = Some(caller.clone());
        Ok(Some((process, caller)))
    }

    /// Returns the parameters of the next call; `None` if the reply has the result.
    fn next(&mut self, reply: &Value, key: &str, call: &Value) -> Result<Option<Value>> {
        let result = reply.get("result").with_context(|| format!("an error: {reply}"))?;
        if let Some(state) = result.get("requestState") {
            let mut round = call.clone();
            round["requestState"] = state.clone();
            return Ok(Some(round));
        }
        if let Some(task) = pending_task(reply) {
            let repeats = self.random.percent(REPEATED_TOOL);
            let ask = json!({"name": "task_result", "arguments": {"task": task}});
            return Ok(Some(if repeats { call.clone() } else { ask }));
        }
        ensure!(text(reply).contains(&format!("rendered {key}")), "another result: {reply}");
        Ok(None)
    }
}

/// Sends a request once, and leaves at the timeout.
fn attempt(caller: &Caller, params: Value, timeout: Duration) -> Attempt {
    let message = caller.framed("tools/call", params);
    let Ok(stream) = caller.open(&message) else { return Attempt::NotSent };
    match read(&stream, timeout) {
        Ok((404, _)) => Attempt::NoSession,
        Ok((_, reply)) => Attempt::Reply(reply),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
            leave(caller, &message, &stream)
        }
        Err(_) => Attempt::Lost,
    }
}

/// Leaves as clients do at their timeout. A reply that was flushed before counts as received, so
/// that every other reply is known to be unflushed.
fn leave(caller: &Caller, message: &Value, stream: &TcpStream) -> Attempt {
    if caller.is_legacy() {
        let params = json!({"requestId": message["id"], "reason": "Request timed out"});
        let cancelled =
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
        // The server may be down already.
        let _ = caller.notify(&cancelled);
    }
    let _ = stream.shutdown(Shutdown::Write);
    match read(stream, GOODBYE) {
        Ok((200, reply)) => Attempt::Reply(reply),
        _ => Attempt::TimedOut,
    }
}

fn read(stream: &TcpStream, timeout: Duration) -> io::Result<(u16, Value)> {
    stream.set_read_timeout(Some(timeout))?;
    let mut response = Response::read(BufReader::new(stream.try_clone()?))?;
    let status = response.status;
    if status == 404 {
        return Ok((status, Value::Null));
    }
    Ok((status, last(&mut response)?))
}
