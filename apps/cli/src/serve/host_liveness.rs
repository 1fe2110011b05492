//! Which machine this is, and whether another one that runs a command is still there.
//!
//! A command runs on the machine of the server that started it. Where servers share a store, another
//! one may be given its task. It must not report the command as lost, nor run it again, while the
//! machine it runs on may come back: each server says in the store that it lives, and its commands
//! end by themselves when it has not been there for a while. Only when both have happened for
//! certain is a command lost.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use outlive::store::Store;
use serde_json::value::RawValue;
use tokio::time::{MissedTickBehavior, interval, timeout};

/// The machine, or rather the data folder: commands are found by whoever has it.
#[derive(Clone, Debug)]
pub(super) struct Host {
    id: Arc<str>,
    data: PathBuf,
}

impl Host {
    /// Reads the name of the data folder, or gives it one.
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

    /// Whether another machine has lately said that it lives.
    pub(super) async fn is_alive(store: &dyn Store, id: &str) -> bool {
        // Who cannot ask does not know: only a store that answers says that somebody is gone.
        !matches!(store.get_value(&key(id)).await, Ok(None))
    }

    /// Says that this machine lives, for as long as it is polled: to the others in the store, and then
    /// to its own commands. Those of a server that cannot tell the store end in time.
    pub(super) async fn live(self, store: Arc<dyn Store>, replica_timeout: Duration) {
        let often = replica_timeout / 12;
        let mut pulses = interval(often);
        pulses.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            pulses.tick().await;
            let note = RawValue::from_string("true".to_owned()).expect("this is JSON");
            let key = key(&self.id);
            match timeout(often, store.put(&key, note, replica_timeout, None)).await {
                Ok(Ok(())) => {
                    if let Err(error) = outlive_jobs::record_heartbeat(&self.data) {
                        tracing::error!(%error, "the data folder cannot be written; commands end");
                    }
                }
                Ok(Err(error)) => {
                    tracing::warn!(%error, "the store is out of reach; commands end if it stays so")
                }
                Err(_) => tracing::warn!("the store does not answer; commands end if it stays so"),
            }
        }
    }
}

/// For how long a command goes on without a server, in parts of the time after which others take it
/// for lost: a twelfth until the store has not answered, four without a pulse, one to notice it, and
/// two to end. A third is left for what nobody has thought of.
pub(super) fn orphan_after(replica_timeout: Duration) -> Duration {
    replica_timeout / 3
}

/// How long a command may take to end then.
pub(super) fn longest_end(replica_timeout: Duration) -> Duration {
    replica_timeout / 6
}

fn key(id: &str) -> String {
    format!("outlive/host/{id}")
}

/// Two servers that begin at the same time end up with the same name.
fn name_it(path: &Path) -> io::Result<String> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    let id: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let own = path.with_extension(&id);
    fs::write(&own, &id)?;
    // A link is made only if nobody else was faster.
    let linked = fs::hard_link(&own, path);
    fs::remove_file(&own)?;
    match linked {
        Ok(()) => Ok(id),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => fs::read_to_string(path),
        Err(error) => Err(error),
    }
}
