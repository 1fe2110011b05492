//! Makes a command of what is to be run, or says why it cannot be started and what to do about it.

use std::{
    io::{self, ErrorKind},
    path::Path,
    process::{Command, Stdio},
};

use super::{JOB_VARIABLE, JobSpec, control::Channel};

/// The command, ready to be started. `mark` is what its processes have in their environment.
pub(super) fn prepare(spec: &JobSpec, mark: &str, channel: Channel) -> Result<Command, String> {
    let Some((program, arguments)) = spec.argv.split_first() else {
        return Err("the command is empty; name a program".to_owned());
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
        // Told apart here, because a folder that is missing looks like a program that is.
        if !folder.is_dir() {
            return Err(format!(
                "there is no folder `{}` to run it in; make it, or name another",
                folder.display()
            ));
        }
        command.current_dir(folder);
    }
    let has_responses = spec.interactive && matches!(channel, Channel::Stdout(_));
    let has_input = has_responses || spec.stdin.is_some();
    command.stdin(if has_input { Stdio::piped() } else { Stdio::null() });
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    channel.give_to(&mut command)?;
    Ok(command)
}

/// Why it could not be started.
pub(super) fn explain(spec: &JobSpec, error: &io::Error) -> String {
    /// `ENOEXEC`, on every Unix.
    const NO_PROGRAM: i32 = 8;
    let program = spec.argv.first().map(String::as_str).unwrap_or_default();
    match error.kind() {
        ErrorKind::NotFound if program.contains('/') && Path::new(program).exists() => format!(
            "`{program}` is there, but not the program that its first line (`#!`) names; install that, or change the line"
        ),
        ErrorKind::NotFound => format!(
            "there is no program `{program}`; install it, or give its full path if it is not in PATH"
        ),
        ErrorKind::PermissionDenied => {
            format!("`{program}` may not be run; make it executable (chmod +x)")
        }
        ErrorKind::ArgumentListTooLong => format!(
            "the arguments of `{program}` are longer than this system allows; pass them on standard input"
        ),
        ErrorKind::InvalidInput => {
            format!("`{program}` cannot be given a NUL byte in an argument or a variable ({error})")
        }
        _ if cfg!(unix) && error.raw_os_error() == Some(NO_PROGRAM) => {
            format!("`{program}` is no program; a script begins with `#!` and its interpreter")
        }
        _ => format!("`{program}` could not be started: {error}"),
    }
}
