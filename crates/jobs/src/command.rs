//! Prepares a command from a job specification, and explains why a command cannot be started.

use std::{
    io::{self, ErrorKind},
    path::Path,
    process::{Command, Stdio},
};

use super::{JOB_VARIABLE, JobSpec, control::Channel};

/// Returns the command, ready to start. `mark` identifies its processes in their environment.
pub(super) fn prepare(spec: &JobSpec, mark: &str, channel: Channel) -> Result<Command, String> {
    let Some((program, arguments)) = spec.argv.split_first() else {
        return Err("the command is empty; specify a program".to_owned());
    };
    let mut command = Command::new(program);
    command.args(arguments);
    if spec.clear_env {
        command.env_clear();
    }
    for (name, _) in std::env::vars_os().filter(|(name, _)| spec.withholds(name)) {
        command.env_remove(name);
    }
    command.envs(spec.env.iter().map(|(name, value)| (name, value))).env(JOB_VARIABLE, mark);
    if let Some(folder) = &spec.working_dir {
        enter(&mut command, folder)?;
    }
    let has_responses = spec.responds() && matches!(channel, Channel::Stdout(_));
    let has_input = has_responses || spec.stdin.is_some();
    command.stdin(if has_input { Stdio::piped() } else { Stdio::null() });
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    channel.give_to(&mut command)?;
    Ok(command)
}

/// Sets the working directory of a command.
pub(super) fn enter(command: &mut Command, folder: &Path) -> Result<(), String> {
    // Checked here, because the error for a missing folder looks like that for a missing program.
    if !folder.is_dir() {
        return Err(format!(
            "the working directory `{}` does not exist; create it, or specify another",
            folder.display()
        ));
    }
    command.current_dir(folder);
    Ok(())
}

/// Returns a message that explains why a program could not be started.
pub(super) fn explain(program: &str, error: &io::Error) -> String {
    /// `ENOEXEC`, on every Unix.
    const NO_PROGRAM: i32 = 8;
    match error.kind() {
        ErrorKind::NotFound if program.contains('/') && Path::new(program).exists() => format!(
            "`{program}` exists, but its interpreter (first line, `#!`) does not; install the interpreter, or change the line"
        ),
        ErrorKind::NotFound => format!(
            "program `{program}` not found; install it, or use its full path if it is not in PATH"
        ),
        ErrorKind::PermissionDenied => {
            format!("`{program}` is not executable; run `chmod +x` on it")
        }
        ErrorKind::ArgumentListTooLong => format!(
            "the arguments of `{program}` exceed the limit of this system; pass them on standard input"
        ),
        ErrorKind::InvalidInput => {
            format!("an argument or variable of `{program}` contains a NUL byte ({error})")
        }
        _ if cfg!(unix) && error.raw_os_error() == Some(NO_PROGRAM) => {
            format!(
                "`{program}` is not an executable program; start a script with `#!` and its interpreter"
            )
        }
        _ => format!("starting `{program}` failed: {error}"),
    }
}
