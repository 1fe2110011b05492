//! The process that watches over one command: `outlive __supervise <folder of the job>`.
//!
//! It is started by a server and outlives it. It holds the job's lock for as long as it lives, starts the command once,
//! and writes down how it ended.

mod control;
mod messages;
mod run;

use std::{
    fs::File,
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
};

use super::{
    Error, Result,
    files::{now, random_name},
    folder::{Begun, Folder},
    processes,
};

/// Which command to watch over.
#[derive(Debug, clap::Args)]
pub(crate) struct SuperviseArgs {
    /// The folder of the job.
    job: PathBuf,
}

/// What a supervisor prints once the command has been started, or could not be.
pub(super) const READY: &str = "ready";

/// Watches over one command until none of its processes is left.
pub(crate) fn supervise(args: SuperviseArgs) -> crate::trouble::Result<ExitCode> {
    // A session of its own, so that closing the server's terminal does not end it. It fails for the leader of a group,
    // who is one that was started by hand.
    let _ = rustix::process::setsid();
    let folder = Folder::new(args.job);
    if let Err(error) = watch_over(&folder) {
        // For the server that waits for `READY`.
        let _ = writeln!(io::stdout(), "{}", complaint(&error));
        return Err(error.into());
    }
    Ok(ExitCode::SUCCESS)
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
    // Nobody else begins as long as the lock is held. Somebody may have done it before.
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
        let control = control::Control::open(folder).map_err(problem("open a socket for"))?;
        let begun = Begun { at: now(), mark: format!("{}.{}", folder.id(), random_name()) };
        let run = run::Run::prepare(folder, spec, control).map_err(problem("keep output in"))?;
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

/// Tells the server that it need not wait any longer, and lets go of it.
fn say_ready() {
    // It may be gone.
    let _ = writeln!(io::stdout(), "{READY}");
    if let Ok(nowhere) = File::options().write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdout(nowhere);
    }
}
