//! The cost of authentication: a call with a known signed token, beside the same call to a server
//! without authentication.

use anyhow::{Context, Result};

use super::Plan;
use crate::{
    child::Server,
    load::{Loaded, http::Load},
    machine::Cores,
    messages::{MODERN_CALL_HEADERS, http_request, modern_call},
    peers::Peers,
    report::{Bar, Report},
    slices::{self, Slice, Target},
};

const CONNECTIONS: usize = 32;

pub(super) fn measure(plan: &Plan, _: &Peers, cores: Cores, report: &mut Report) -> Result<()> {
    let (open, open_address) = Server::listening("outlive-http", cores)?;
    let (guarded, guarded_address, said) = Server::telling("outlive-tokens-http", cores)?;
    let (token, long) = said.split_once(' ').context("the server printed no tokens")?;
    let call = |token: Option<&str>| {
        let shown = token.map(|token| format!("Bearer {token}"));
        let mut headers = MODERN_CALL_HEADERS.to_vec();
        headers.extend(shown.as_deref().map(|shown| ("authorization", shown)));
        vec![http_request("POST", "/mcp", &headers, &modern_call()); CONNECTIONS]
    };
    let target = |name: &str, server: &Server, address, token| {
        let load = Load::open(address, call(token))
            .with_context(|| format!("the first calls to {name}"))?;
        anyhow::Ok(Box::new(Loaded::new(name, server, load)) as Box<dyn Target>)
    };
    let long_name = format!("a token of {} bytes", long.len());
    let mut targets = [
        target("no authentication", &open, open_address, None)?,
        target("a cached token", &guarded, guarded_address, Some(token))?,
        target(&long_name, &guarded, guarded_address, Some(long))?,
    ];
    eprintln!("measuring tokens");
    let series = slices::take(&mut targets, plan.rounds, plan.slice)?;
    let cpu = |slice: &Slice| slice.cpu;
    report.title(&format!("Tools/call of 2026-07-28 with a JWT, {CONNECTIONS} kept connections"));
    report.say(format!(
        "The token (ES256, {} bytes) is checked with its issuer's keys once, then cached.",
        token.len()
    ));
    let [anonymous, cached, long] = &series[..] else { return Ok(()) };
    let ratio = cached.ratio(anonymous, cpu);
    report.ratio("a cached token / no authentication (CPU)", ratio);
    report.ratio(&format!("{long_name} / no authentication (CPU)"), long.ratio(anonymous, cpu));
    report.series(&series);
    let name = "a call with a cached JWT, CPU relative to a call without";
    report.bar(Bar::at_most(name, Some(ratio.spread.median), 1.15, "x"));
    Ok(())
}
