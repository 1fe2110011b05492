//! `status.json`: replaced as a whole, at most once a second.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use super::report::GatewayStatus;

/// Shortest time between two writes.
pub(crate) const INTERVAL: Duration = Duration::from_secs(1);

/// The file with the status of a gateway.
#[derive(Debug)]
pub(crate) struct StatusFile {
    path: PathBuf,
    written_at: Option<Instant>,
    /// The upstreams as they were written, to skip a write without a change.
    last: Vec<u8>,
}

impl StatusFile {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, written_at: None, last: Vec::new() }
    }

    /// Writes the status if it changed and the last write is at least a second ago.
    pub(crate) fn write(&mut self, status: &GatewayStatus, now: Instant) -> io::Result<bool> {
        if self.written_at.is_some_and(|last| now.saturating_duration_since(last) < INTERVAL) {
            return Ok(false);
        }
        let upstreams = serde_json::to_vec(&status.upstreams)?;
        if self.written_at.is_some() && upstreams == self.last {
            return Ok(false);
        }
        let mut text = serde_json::to_vec(status)?;
        text.push(b'\n');
        replace(&self.path, &text)?;
        self.written_at = Some(now);
        self.last = upstreams;
        Ok(true)
    }

    /// Removes the file, because its gateway ends.
    pub(crate) fn remove(&self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Writes a file beside `path`, then renames it, so that readers see a whole file.
fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let beside = path.with_file_name(format!(".{name}.{}", std::process::id()));
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    private(&mut options);
    let mut file = options.open(&beside)?;
    let written = file.write_all(text).and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written
}

#[cfg(unix)]
fn private(options: &mut OpenOptions) {
    use std::os::unix::fs::OpenOptionsExt as _;

    options.mode(0o600);
}

#[cfg(not(unix))]
fn private(_: &mut OpenOptions) {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::{State, UpstreamStatus};

    #[test]
    fn file_is_replaced_once_a_second_if_the_status_changed() {
        let path = std::env::temp_dir().join(format!(
            "outlive-gateway-status-{}-{:?}",
            std::process::id(),
            Instant::now()
        ));
        let mut file = StatusFile::new(path.clone());
        let mut status = GatewayStatus::default();
        let start = Instant::now();
        assert!(file.write(&status, start).unwrap());
        status.upstreams.push(UpstreamStatus { state: State::Ready, ..Default::default() });
        assert!(!file.write(&status, start + INTERVAL / 2).unwrap());
        assert!(file.write(&status, start + INTERVAL).unwrap());
        status.written_at = 7;
        assert!(!file.write(&status, start + 3 * INTERVAL).unwrap());
        let read = GatewayStatus::read(&path).unwrap().unwrap();
        assert_eq!(read.upstreams[0].state, State::Ready);
        file.remove();
        assert!(GatewayStatus::read(&path).unwrap().is_none());
    }
}
