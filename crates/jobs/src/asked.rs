//! Runs a program as a supervisor, if a server started it as one.

use std::{
    env,
    path::Path,
    process::ExitCode,
    sync::atomic::{AtomicBool, Ordering},
};

use super::{names::SUPERVISE, supervise};

/// Whether supervisors can run this program.
static CAN_SUPERVISE: AtomicBool = AtomicBool::new(false);

/// Runs this process as a supervisor if a server started it as one, and then returns its exit code.
/// Otherwise returns `None`, and this program can start supervisors.
///
/// A program calls this function first in `main`:
///
/// ```no_run
/// use std::process::ExitCode;
///
/// fn main() -> ExitCode {
///     if let Some(code) = outlive_jobs::supervise_if_asked() {
///         return code;
///     }
///     // The program itself.
///     ExitCode::SUCCESS
/// }
/// ```
pub fn supervise_if_asked() -> Option<ExitCode> {
    let mut arguments = env::args_os().skip(1);
    if arguments.next().is_none_or(|first| first != SUPERVISE) {
        CAN_SUPERVISE.store(cfg!(unix), Ordering::Relaxed);
        return None;
    }
    let Some(folder) = arguments.next() else {
        eprintln!("error: `{SUPERVISE}` needs the folder of a job; only a server starts it");
        return Some(ExitCode::from(2));
    };
    Some(match supervise(Path::new(&folder)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Written to the file `log` of the job.
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    })
}

/// Returns whether this program calls [`supervise_if_asked`], so that supervisors can run it.
pub fn can_supervise() -> bool {
    CAN_SUPERVISE.load(Ordering::Relaxed)
}
