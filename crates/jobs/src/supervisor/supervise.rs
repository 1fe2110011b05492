//! The life of a supervisor: takes the lock, starts the command once, and stays until all is written down.

use std::{
    io::{self, Write},
    path::Path,
};

use super::{
    super::{
        error::{Error, Result},
        files::{now, random_name},
        folder::{Begun, Folder},
        processes,
    },
    control::Control,
    run::Run,
};

/// Runs the supervisor of the job in this folder, until no process of its command is left.
///
/// A program calls this when a server has started it with [`SUPERVISE`](crate::SUPERVISE) and the folder. It takes the
/// process over: it becomes the leader of a session, adopts orphaned descendants, and reports on standard output whether
/// the command has started.
pub fn supervise(job: &Path) -> Result<()> {
    // A session of its own, so that closing the server's terminal does not end it. It fails for the leader of a group,
    // which is a supervisor that was started by hand.
    let _ = rustix::process::setsid();
    watch_over(&Folder::new(job.to_owned())).inspect_err(|error| {
        // For the server that waits for `READY`.
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
    // Never to be dropped, and no other handle of the file may be closed here: that would give the lock back.
    let Some(_lock) = folder.hold().map_err(problem("take the lock of"))? else { return Ok(()) };
    // No other supervisor starts the command while this one holds the lock. An earlier one may have.
    if folder.begun().map_err(problem("look into"))?.is_some() {
        return Ok(());
    }
    let spec = folder.spec().map_err(problem("read what to run from"))?;
    lower_priority(spec.niceness);
    processes::become_reaper().map_err(problem("adopt the processes of"))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(problem("wait for"))?;
    runtime.block_on(async {
        let control = Control::open(folder).map_err(problem("open a socket for"))?;
        let begun = Begun { at: now(), mark: format!("{}.{}", folder.id(), random_name()) };
        let run = Run::prepare(folder, spec, control).map_err(problem("keep output in"))?;
        folder.begin(&begun).map_err(problem("begin"))?;
        run.start_and_watch(&begun.mark).await;
        Ok(())
    })
}

/// Lowers the priority of this process and of all that it starts, as far as the system lets it.
fn lower_priority(niceness: i32) {
    if niceness > 0 {
        let _ = rustix::process::nice(niceness);
        // Where Linux shares time out among sessions first, it has a number of its own for each.
        let _ = std::fs::write("/proc/self/autogroup", niceness.to_string());
    }
}
