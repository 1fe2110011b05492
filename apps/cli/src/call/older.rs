//! Servers that were met with the handshake of an older generation, so that the next command does not ask them what
//! they do not know: old servers log that, and the user would see it every time.

use std::{collections::BTreeMap, fs, io, path::PathBuf};

use super::private_file::write_private;
use crate::{paths, store::wall_clock};

/// How long a server is taken for what it was: it may have been upgraded.
const MAX_AGE: u64 = 24 * 3600 * 1000;

/// How many servers are remembered; more are forgotten all together.
const MAX_SERVERS: usize = 1_000;

/// What is remembered, in a file of the data folder. Where nothing can be kept, nothing is.
pub(super) struct OlderServers {
    file: Option<PathBuf>,
    /// When each was met, in milliseconds since 1970.
    met: BTreeMap<String, u64>,
}

impl OlderServers {
    pub(super) fn open() -> Self {
        let file = paths::data().ok().map(|data| data.join("older-servers.json"));
        let text = file.as_ref().and_then(|file| fs::read(file).ok()).unwrap_or_default();
        Self { file, met: serde_json::from_slice(&text).unwrap_or_default() }
    }

    /// Whether a server was older when it was last met, not long ago.
    pub(super) fn has(&self, server: &str) -> bool {
        let now = wall_clock();
        self.met.get(server).is_some_and(|met| *met <= now && now - met < MAX_AGE)
    }

    /// Notes what a server has turned out to be.
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
    fn server_is_remembered_for_a_day_and_no_longer() {
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
