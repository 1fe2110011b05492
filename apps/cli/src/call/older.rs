//! Cache of servers that support only the legacy era.
//!
//! For a cached server, the next command skips the modern probe. Old servers log such a probe as an
//! error, and the user would see that log every time.

use std::{collections::BTreeMap, fs, io, path::PathBuf};

use super::private_file::write_private;
use crate::{paths, store::wall_clock};

/// Age at which an entry expires, because the server may have been upgraded, in milliseconds.
const MAX_AGE: u64 = 24 * 3600 * 1000;

/// Maximum number of entries. A full cache is cleared.
const MAX_SERVERS: usize = 1_000;

/// The cache, in a file of the data folder. Without a data folder, nothing is cached.
pub(super) struct OlderServers {
    file: Option<PathBuf>,
    /// Time of the last connection to each server, in Unix milliseconds.
    met: BTreeMap<String, u64>,
}

impl OlderServers {
    pub(super) fn open() -> Self {
        let file = paths::data().ok().map(|data| data.join("older-servers.json"));
        let text = file.as_ref().and_then(|file| fs::read(file).ok()).unwrap_or_default();
        Self { file, met: serde_json::from_slice(&text).unwrap_or_default() }
    }

    /// Returns whether a server supported only the legacy era at its last recent connection.
    pub(super) fn has(&self, server: &str) -> bool {
        let now = wall_clock();
        self.met.get(server).is_some_and(|met| *met <= now && now - met < MAX_AGE)
    }

    /// Records the era of a server.
    pub(super) fn note(&mut self, server: &str, is_older: bool) {
        if self.has(server) == is_older {
            return;
        }
        if self.met.len() >= MAX_SERVERS {
            self.met.clear();
        }
        match is_older {
            true => drop(self.met.insert(server.to_owned(), wall_clock())),
            false => drop(self.met.remove(server)),
        }
        // If the file cannot be written, the next command probes the server again.
        let _ = self.save();
    }

    fn save(&self) -> io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        if let Some(folder) = file.parent() {
            paths::make_private(folder)?;
        }
        write_private(file, &serde_json::to_vec(&self.met)?)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{MAX_AGE, OlderServers};
    use crate::store::wall_clock;

    #[test]
    fn older_server_entry_expires_after_a_day() {
        let now = wall_clock();
        let met = [("new", now - 1), ("old", now - MAX_AGE), ("later", now + 60_000)];
        let met: BTreeMap<String, u64> =
            met.into_iter().map(|(server, at)| (server.to_owned(), at)).collect();
        let mut servers = OlderServers { file: None, met };
        assert!(servers.has("new") && !servers.has("old") && !servers.has("later"));
        servers.note("new", false);
        servers.note("old", true);
        assert!(!servers.has("new") && servers.has("old"));
    }
}
