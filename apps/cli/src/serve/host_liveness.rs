//! Identity of this machine, and liveness of other machines that run commands.
//!
//! A command runs on the machine of the server that started it. With a shared store, another server
//! may claim its task. That server must not report the command as lost or rerun it while the first
//! machine may return. So each server sends heartbeats to the store, and a command ends when its
//! server is gone too long. A command is lost only after both timeouts.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use outlive::store::Store;
use serde_json::value::RawValue;
use tokio::time::{MissedTickBehavior, interval, timeout};

/// A machine, identified by its data folder: the server with that folder finds its commands.
#[derive(Clone, Debug)]
pub(super) struct Host {
    id: Arc<str>,
    data: PathBuf,
}

impl Host {
    /// Reads the host ID in the data folder, or creates one.
    pub(super) fn of(data: &Path) -> io::Result<Self> {
        let path = data.join("host-id");
        let found = match fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => name_it(&path)?,
            read => read?,
        };
        Ok(Self { id: found.trim().into(), data: data.to_owned() })
    }

    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// Returns whether another machine sent a recent heartbeat.
    pub(super) async fn is_alive(store: &dyn Store, id: &str) -> bool {
        // A store error is not evidence of death: only a successful read without a value is.
        !matches!(store.get_value(&key(id)).await, Ok(None))
    }

    /// Sends heartbeats until dropped: first to the store, then to the commands of this machine.
    ///
    /// Without heartbeats, commands end. So commands of a server that cannot reach the store end in
    /// time.
    pub(super) async fn live(self, store: Arc<dyn Store>, replica_timeout: Duration) {
        let often = replica_timeout / 12;
        let mut pulses = interval(often);
        pulses.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            pulses.tick().await;
            let note = RawValue::from_string("true".to_owned()).expect("`true` is valid JSON");
            let key = key(&self.id);
            match timeout(often, store.put(&key, note, replica_timeout, None)).await {
                Ok(Ok(())) => {
                    if let Err(error) = outlive_jobs::record_heartbeat(&self.data) {
                        tracing::error!(%error, "cannot write the heartbeat to the data folder; commands will end");
                    }
                }
                Ok(Err(error)) => {
                    tracing::warn!(%error, "the store is unavailable; commands end if the outage continues")
                }
                Err(_) => tracing::warn!(
                    "the store does not respond; commands end if the outage continues"
                ),
            }
        }
    }
}

/// Returns how long a command keeps running without a heartbeat of its server.
///
/// In twelfths of `replica_timeout`: one for a store timeout, four without a heartbeat, one to
/// detect it, and two to end. The remaining four are a safety margin.
pub(super) fn orphan_after(replica_timeout: Duration) -> Duration {
    replica_timeout / 3
}

/// Returns the maximum time that an orphaned command may take to end.
pub(super) fn longest_end(replica_timeout: Duration) -> Duration {
    replica_timeout / 6
}

fn key(id: &str) -> String {
    format!("outlive/host/{id}")
}

/// Creates a host ID. Two servers that start at the same time get the same ID.
fn name_it(path: &Path) -> io::Result<String> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    let id: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let own = path.with_extension(&id);
    fs::write(&own, &id)?;
    // A hard link fails if another server has already created the file.
    let linked = fs::hard_link(&own, path);
    fs::remove_file(&own)?;
    match linked {
        Ok(()) => Ok(id),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => fs::read_to_string(path),
        Err(error) => Err(error),
    }
}
