//! Cells that should work and do not, because the gateway lacks something.

use super::versions::Version;

/// A gap, and the error that must occur for its entry to apply.
#[derive(Debug)]
pub(super) struct Gap {
    row: &'static str,
    clients: &'static [Version],
    upstreams: &'static [Version],
    /// A part of the error.
    pub(super) says: &'static str,
    pub(super) reason: &'static str,
}

pub(super) fn find(row: &str, client: Version, upstream: Version) -> Option<&'static Gap> {
    GAPS.iter().find(|gap| {
        gap.row == row && gap.clients.contains(&client) && gap.upstreams.contains(&upstream)
    })
}

const GAPS: &[Gap] = &[];
