//! Detection of machine stalls: a slow disk, or processors that are busy with other work. During a
//! stall no server can renew its leases.
//!
//! The detection does not rely on the servers, because a faulty server could excuse itself.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};

use super::oracle::Oracle;

/// The failure lines for the start and the end of a stall.
pub(super) const BEGINS: &str = "stall";
pub(super) const ENDS: &str = "flow";

/// The name of the machine in failure lines.
const NO_PROCESS: &str = "machine";
const PAUSE: Duration = Duration::from_millis(100);

/// Writes a few bytes to the disk until the end of the run, and records when a write takes long.
///
/// A heartbeat may take a sixth of a lease: it may wait for the commits of three servers before its
/// own, and each commit waits for the disk.
pub(super) fn watch(
    folder: &Path,
    oracle: &Oracle,
    lease: Duration,
    is_terminal: &AtomicBool,
) -> Result<()> {
    let path = folder.join("stall");
    let mut file = File::create(&path).context("could not create a file to monitor the disk")?;
    let long = lease / 24;
    let (tell, told) = mpsc::channel();
    thread::scope(|scope| {
        let writer = scope.spawn(move || -> Result<()> {
            while !is_terminal.load(Ordering::Relaxed) {
                thread::sleep(PAUSE);
                file.write_all(&[0; 512]).and_then(|()| file.sync_data())?;
                // The receiver is gone only if writing a failure line failed, which is reported
                // itself.
                let _ = tell.send(());
            }
            Ok(())
        });
        loop {
            match told.recv_timeout(PAUSE + long) {
                Ok(()) => {}
                Err(RecvTimeoutError::Timeout) => {
                    oracle.fault(BEGINS, NO_PROCESS)?;
                    let _ = told.recv();
                    oracle.fault(ENDS, NO_PROCESS)?;
                }
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        writer.join().map_err(|_| anyhow::anyhow!("the disk monitor panicked"))?
    })
    .context("could not monitor the disk")
}
