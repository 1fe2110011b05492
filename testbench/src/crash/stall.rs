//! Notices when the machine itself stands still: a disk that takes long over a few bytes, or processors
//! that others have. Nobody can renew a lease then, and no server is to blame.
//!
//! The servers are not asked: one that is wrong about it would excuse itself.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};

use super::oracle::Oracle;

/// Its beginning and its end, among the faults.
pub(super) const BEGINS: &str = "stall";
pub(super) const ENDS: &str = "flow";

/// The name of the machine, where processes have theirs.
const NO_PROCESS: &str = "machine";
const PAUSE: Duration = Duration::from_millis(100);

/// Writes a little to the disk again and again until it is over, and notes when that takes long.
///
/// A renewal may take a sixth of a lease. It may have to wait for the commits of three servers before
/// its own, and each of them for the disk.
pub(super) fn watch(
    folder: &Path,
    oracle: &Oracle,
    lease: Duration,
    is_terminal: &AtomicBool,
) -> Result<()> {
    let path = folder.join("stall");
    let mut file = File::create(&path).context("could not make a file to watch the disk by")?;
    let long = lease / 24;
    let (tell, told) = mpsc::channel();
    thread::scope(|scope| {
        let writer = scope.spawn(move || -> Result<()> {
            while !is_terminal.load(Ordering::Relaxed) {
                thread::sleep(PAUSE);
                file.write_all(&[0; 512]).and_then(|()| file.sync_data())?;
                // Nobody listens any more if a note could not be written, which says so itself.
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
        writer.join().map_err(|_| anyhow::anyhow!("who watches the disk panicked"))?
    })
    .context("the disk could not be watched")
}
