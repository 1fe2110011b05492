//! The static description and settings of a server.

use std::{fmt, sync::Arc};

use outlive_wire::{Implementation, Meta};

use crate::{ChangeBus, Clock, Gauge, Limits, Seal, VersionSet};

/// The static description and settings of a server, shared by its transports.
pub struct Profile {
    /// Name and version.
    pub info: Implementation,
    /// Supported protocol versions.
    pub versions: VersionSet,
    /// Limits.
    pub limits: Limits,
    /// Source of time.
    pub clock: Arc<dyn Clock>,
    /// Bus for changes of lists and resources.
    pub bus: ChangeBus,
    /// Shutdown signal. Carries no changes; closing it cancels the calls that still run.
    pub cutoff: ChangeBus,
    /// Seals data that clients carry for the server.
    pub seal: Seal,
    /// Number of open streams.
    pub streams: Gauge,
    /// The serialized `_meta` member with the server info; empty if results do not have it.
    pub(crate) server_info_member: Box<str>,
}

impl Profile {
    /// Creates a profile. `server_info_in_results` adds `serverInfo` to every modern result, as the
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
