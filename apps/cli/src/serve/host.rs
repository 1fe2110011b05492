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

use outlive::tasks::Store;
use serde_json::value::RawValue;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::job::{ServerLock, server_lock};

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
        !matches!(store.kept(&key(id)).await, Ok(None))
    }

    /// Says that this machine lives, for as long as it is polled. While the store cannot be told,
    /// the lock is given back: commands that others may take for lost end.
    pub(super) async fn live(self, store: Arc<dyn Store>, lost_after: Duration) {
        let mut lock: Option<ServerLock> = None;
        let mut told = Instant::now();
        let mut pulse = interval(lost_after / 6);
        pulse.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            pulse.tick().await;
            let note = RawValue::from_string("true".to_owned()).expect("this is JSON");
            match store.replace(&key(&self.id), note, lost_after).await {
                Ok(()) => {
                    told = Instant::now();
                    if lock.is_none() {
                        lock = server_lock(&self.data)
                            .inspect_err(
                                |error| tracing::warn!(%error, "the data folder cannot be locked"),
                            )
                            .ok();
                    }
                }
                Err(error) if told.elapsed() > lost_after / 3 => {
                    if lock.take().is_some() {
                        tracing::warn!(%error, "the store is out of reach; commands end, since others may run them again");
                    }
                }
                Err(error) => {
                    tracing::debug!(%error, "the store could not be told that this server lives")
                }
            }
        }
    }
}

/// For how long a command goes on without a server: well before others take it for lost.
pub(super) fn orphan_after(lost_after: Duration) -> Duration {
    lost_after / 3
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
