//! What stays the same about a server for as long as it runs.

use std::{fmt, sync::Arc};

use outlive_wire::{Implementation, Meta};

use crate::{ChangeBus, Clock, Gauge, Limits, Seal, VersionSet};

/// What stays the same about a server for as long as it runs.
pub struct Profile {
    /// Name and version.
    pub info: Implementation,
    /// The protocol versions that are served.
    pub versions: VersionSet,
    /// What is accepted and kept.
    pub limits: Limits,
    /// Where time comes from.
    pub clock: Arc<dyn Clock>,
    /// Where changes are announced.
    pub bus: ChangeBus,
    /// Nothing is announced on it. It closes when the process ends and gives up the calls that
    /// still run.
    pub cutoff: ChangeBus,
    /// Seals what clients carry for the server.
    pub seal: Seal,
    /// How many streams are open.
    pub streams: Gauge,
    /// The member of `_meta` that says who the server is, serialized once; empty if results do not
    /// have it.
    pub(crate) server_info_member: Box<str>,
}

impl Profile {
    /// Builds a profile. `server_info_in_results` puts `serverInfo` into every modern result, as the
    /// specification recommends.
    pub fn new(
        info: Implementation,
        versions: VersionSet,
        limits: Limits,
        clock: Arc<dyn Clock>,
        seal: Seal,
        server_info_in_results: bool,
    ) -> Self {
        let server_info_member = match server_info_in_results {
            true => server_info_member(&info),
            false => Box::default(),
        };
        Self {
            info,
            versions,
            limits,
            clock,
            bus: ChangeBus::default(),
            cutoff: ChangeBus::default(),
            seal,
            streams: Gauge::default(),
            server_info_member,
        }
    }
}

fn server_info_member(info: &Implementation) -> Box<str> {
    let json = serde_json::to_string(info).expect("an implementation serializes into memory");
    format!(r#""{}":{json}"#, Meta::SERVER_INFO).into()
}

impl fmt::Debug for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Profile")
            .field("info", &self.info)
            .field("versions", &self.versions)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}
