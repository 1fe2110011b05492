//! Shows the call timeouts that servers have learned from their clients.

use outlive::{
    operator::{LearnedTimeout, Operator},
    store::StoreError,
};

use super::Finding;
use crate::{
    print,
    store::{rough, stamp, wall_clock},
};

const HOSTS: &str = "hosts";

/// Maximum number of findings.
const SHOWN: usize = 20;

/// Maximum number of callers whose limits are read.
const CALLERS: usize = 1_000;

pub(super) async fn check(url: &str) -> Vec<Finding> {
    match read(url).await {
        Ok(learned) => findings(&learned, wall_clock()),
        Err(error) => vec![Finding::warning(
            HOSTS,
            format!("learned call timeouts cannot be read: {error}"),
            "check the store, and run this command again",
        )],
    }
}

async fn read(url: &str) -> Result<Vec<LearnedTimeout>, StoreError> {
    Operator::open(url).await?.learned_timeouts(CALLERS).await
}

fn findings(learned: &[LearnedTimeout], now: u64) -> Vec<Finding> {
    let used: Vec<_> = learned.iter().filter(|learned| learned.expires_at > now).collect();
    let shown = used.iter().take(SHOWN).map(|learned| Finding::ok(HOSTS, text(learned)));
    let mut findings: Vec<Finding> = shown.collect();
    if let Some(more @ 1..) = used.len().checked_sub(SHOWN) {
        let clients = print::count(more, "further client");
        findings.push(Finding::ok(HOSTS, format!("call timeouts of {clients} were learned")));
    }
    findings
}

/// Describes what was learned for one client.
fn text(learned: &LearnedTimeout) -> String {
    let LearnedTimeout { client, version, transport, .. } = learned;
    let caller = learned.principal.as_deref().unwrap_or("an anonymous session");
    let ends = match (learned.call_timeout, learned.spans_rounds) {
        (Some(timeout), rounds) => {
            let timeout = rough(u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX));
            let rounds = if rounds { ", all rounds together" } else { "" };
            format!("ends calls after {timeout}{rounds}")
        }
        (None, _) => "counts all rounds of a call together".to_owned(),
    };
    let until = stamp(learned.expires_at);
    format!("{client} {version} of {caller} ({transport}) {ends} (learned, used until {until})")
}
