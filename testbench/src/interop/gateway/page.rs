//! `docs/gateway-interop.md`.

use std::fmt::Write as _;

use super::cells::{Cells, Outcome};
use super::foreign::{self, Called};
use super::gaps::Gap;
use super::peers::{CLIENTS, Peer, UPSTREAMS};
use super::rows::{REASONS, ROWS};
use super::versions::Version;

const HEAD: &str = "\
# Clients and servers with the gateway

This page is for people who put existing MCP servers behind Outlive: it shows which features work between which protocol versions, and with which packages
that was seen. `cargo xtask interop --gateway` writes it. `outlive serve` runs between real clients and servers, which speak to it over pipes and sockets.

A cell is a client of one protocol version, an upstream of another and a feature. ✓ means that the client succeeded, and that the messages of the feature were
seen on both connections of the gateway, each in its protocol version. Behind it are the packages that played: client→upstream. A number refers to a
[reason](#reasons), – means that the protocol version does not have the feature and does not need it.

Outlive plays with a pinned protocol version where no other package has the feature in that version.
";

/// Returns the page.
pub(super) fn page(cells: &Cells, called: &[Called]) -> String {
    let mut page = String::from(HEAD);
    let mut gaps: Vec<&'static Gap> = Vec::new();
    for client in Version::ALL {
        section(&mut page, cells, client, &mut gaps);
    }
    page.push_str("\n## Reasons\n\n");
    for (number, reason) in REASONS.iter().enumerate() {
        let _ = writeln!(page, "{}. {reason}", number + 1);
    }
    for (number, gap) in gaps.iter().enumerate() {
        let _ = writeln!(page, "{}. {}", REASONS.len() + number + 1, gap.reason);
    }
    page.push_str(
        "\n## Packages\n\n| code | package | plays | features without it |\n|---|---|---|---|\n",
    );
    for (peers, plays) in [(CLIENTS, "client"), (UPSTREAMS, "upstream")] {
        for peer in peers {
            let _ =
                writeln!(page, "| {} | {} | {plays} | {} |", peer.code, peer.name, reasons(peer));
        }
    }
    page.push_str(&foreign::section(called));
    page
}

/// The table of the clients of one protocol version.
fn section(page: &mut String, cells: &Cells, client: Version, gaps: &mut Vec<&'static Gap>) {
    let upstreams: Vec<Version> =
        Version::ALL.into_iter().filter(|it| cells.has(client, *it)).collect();
    if upstreams.is_empty() {
        return;
    }
    let _ = write!(page, "\n## Clients of {}\n\n| feature |", client.name());
    for upstream in &upstreams {
        let _ = write!(page, " upstream {} |", upstream.name());
    }
    let _ = writeln!(page, "\n|{}", "---|".repeat(upstreams.len() + 1));
    for row in &ROWS {
        let _ = write!(page, "| {} |", row.name);
        for upstream in &upstreams {
            let _ = write!(page, " {} |", shown(&cells.outcome(row, client, *upstream), gaps));
        }
        page.push('\n');
    }
}

fn shown(outcome: &Outcome, gaps: &mut Vec<&'static Gap>) -> String {
    let numbers = |numbers: &[u8]| numbers.iter().map(u8::to_string).collect::<Vec<_>>().join(", ");
    match outcome {
        Outcome::Works { peers, limits } if limits.is_empty() => format!("✓ {}", peers.join(" ")),
        Outcome::Works { peers, limits } => {
            format!("✓ {} ({})", peers.join(" "), numbers(limits))
        }
        Outcome::Reasons(reasons) => numbers(reasons),
        Outcome::Absent => "–".to_owned(),
        Outcome::Known(gap) => {
            let place = gaps.iter().position(|known| std::ptr::eq(*known, *gap));
            let place = place.unwrap_or_else(|| {
                gaps.push(gap);
                gaps.len() - 1
            });
            (REASONS.len() + place + 1).to_string()
        }
        Outcome::Wrong(_) => "FAILS".to_owned(),
    }
}

/// Why a package does not play some features.
fn reasons(peer: &Peer) -> String {
    let mut reasons: Vec<&str> = Vec::new();
    for lack in peer.features_without() {
        if !reasons.contains(&lack.reason) {
            reasons.push(lack.reason);
        }
    }
    reasons.join(" ")
}
