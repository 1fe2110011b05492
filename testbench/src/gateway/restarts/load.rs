//! Callers that call upstreams all the time.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Result, anyhow, ensure};
use serde_json::json;

use crate::gateway::serving::PRINCIPALS;
use crate::hosts::caller::{Caller, text};

/// Pause between two calls of a caller.
const PAUSE: Duration = Duration::from_millis(5);

/// Callers of every principal and kind, which have upstream connections of their own.
#[derive(Debug)]
pub(super) struct Load {
    callers: Vec<Caller>,
    upstreams: Vec<String>,
}

/// Ends of the calls.
#[derive(Debug, Default)]
pub(super) struct Calls {
    pub(super) results: usize,
    /// Errors that name the upstream.
    pub(super) named: usize,
    /// Other ends.
    pub(super) wrong: Vec<String>,
}

impl Load {
    pub(super) fn new(gateway: SocketAddr, upstreams: &[String]) -> Result<Self> {
        let mut callers = Vec::new();
        for (_, token) in PRINCIPALS {
            let token = Some(token);
            callers.push(Caller::modern(gateway, token));
            callers.push(Caller::legacy_with(gateway, token, json!({"elicitation": {}}))?);
        }
        Ok(Self { callers, upstreams: upstreams.to_vec() })
    }

    /// Calls every upstream once from every caller.
    pub(super) fn warm_up(&self) -> Result<()> {
        for caller in &self.callers {
            for upstream in &self.upstreams {
                let reply = caller.call(&format!("{upstream}__echo"), json!({"text": "warm"}))?;
                ensure!(text(&reply) == "warm", "the first call got {reply}");
            }
        }
        Ok(())
    }

    /// Calls until `work` returns. Returns its result, and how the calls ended.
    pub(super) fn during<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<(T, Calls)> {
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let is_over = &is_over;
            let threads: Vec<_> = self
                .callers
                .iter()
                .enumerate()
                .map(|(number, caller)| scope.spawn(move || self.run(number, caller, is_over)))
                .collect();
            let worked = work();
            is_over.store(true, Ordering::Relaxed);
            let mut sum = Calls::default();
            for thread in threads {
                let calls = thread.join().map_err(|_| anyhow!("a caller panicked"))?;
                sum.results += calls.results;
                sum.named += calls.named;
                sum.wrong.extend(calls.wrong);
            }
            Ok((worked?, sum))
        })
    }

    fn run(&self, number: usize, caller: &Caller, is_over: &AtomicBool) -> Calls {
        let mut calls = Calls::default();
        let mut call = 0;
        while !is_over.load(Ordering::Relaxed) {
            let upstream = &self.upstreams[call % self.upstreams.len()];
            let own = format!("caller {number} call {call}");
            call += 1;
            match caller.call(&format!("{upstream}__echo"), json!({"text": own})) {
                Ok(reply) if text(&reply) == own => calls.results += 1,
                Ok(reply) if text(&reply).contains(upstream.as_str()) => calls.named += 1,
                Ok(reply) => calls.wrong.push(reply.to_string()),
                Err(error) => calls.wrong.push(format!("no response: {error}")),
            }
            thread::sleep(PAUSE);
        }
        calls
    }
}
