//! Main function of a supervisor: takes the lock, starts the command once, and runs until the exit
//! is recorded.

use std::{
    io::{self, Write},
    path::Path,
};

use super::{
    super::{
        error::{Error, Result},
        files::{now, random_name},
        folder::{Folder, StartMark},
        pipe::{self, StoredSpec},
        processes,
    },
    control::Control,
    run::Run,
};

/// Runs the supervisor of the job or process in this folder, until no process of it is left.
///
/// A program calls this function when a server started it with [`SUPERVISE`](crate::SUPERVISE) and
/// the folder. The function takes over the process: it becomes a session leader, adopts orphaned
/// descendants, and reports on standard output whether the command has started.
pub fn supervise(job: &Path) -> Result<()> {
    // A separate session, so that closing the server's terminal does not end the supervisor. Fails
    // for a group leader, which is a supervisor that was started manually.
    let _ = rustix::process::setsid();
    let folder = Folder::new(job.to_owned());
    // A folder without a readable specification is reported by the next function.
    let stored: StoredSpec = folder.read_spec().unwrap_or_default();
    let done = match stored.pipe {
        Some(spec) => pipe::supervise(&folder, spec),
        None => watch_over(&folder),
    };
    done.inspect_err(|error| {
        // The server reads this line instead of `READY`.
        let _ = writeln!(io::stdout(), "{}", complaint(error));
    })
}

fn complaint(error: &Error) -> String {
    match error {
        Error::Io { source, .. } => format!("{error}: {source}"),
        _ => error.to_string(),
    }
}

fn watch_over(folder: &Folder) -> Result<()> {
    let problem = |doing| Error::io(doing, folder.path());
    // Must stay open, and no other handle of the file may be closed here: that would release the
    // lock.
    let Some(_lock) = folder.hold().map_err(problem("take the lock of"))? else { return Ok(()) };
    // No other supervisor can start the command while this one holds the lock, but an earlier one
    // may have.
    if folder.start_mark().map_err(problem("read"))?.is_some() {
        return Ok(());
    }
    let spec = folder.spec().map_err(problem("read the specification in"))?;
    lower_priority(spec.niceness);
    processes::become_reaper().map_err(problem("adopt the processes of"))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(problem("start a runtime for"))?;
    runtime.block_on(async {
        let control = Control::open(folder).map_err(problem("open a socket for"))?;
        let start = StartMark { at: now(), mark: format!("{}.{}", folder.id(), random_name()) };
        let run =
            Run::prepare(folder, spec, control).map_err(problem("open the output files in"))?;
        folder.set_start_mark(&start).map_err(problem("record the start in"))?;
        run.start_and_watch(&start.mark).await;
        Ok(())
    })
}

/// Lowers the priority of this process and of its children, as far as the system allows.
fn lower_priority(niceness: i32) {
    if niceness > 0 {
        let _ = rustix::process::nice(niceness);
        // If Linux schedules sessions as groups, each session has its own niceness.
        let _ = std::fs::write("/proc/self/autogroup", niceness.to_string());
    }
}
