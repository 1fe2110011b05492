//! Main function of the supervisor of a process: takes the lock, reads the variables, starts the
//! process once, and runs until no gateway needs it.

use std::{
    ffi::{OsStr, OsString},
    fs,
    io::{self, Read},
    os::unix::{ffi::OsStrExt, process::CommandExt},
    process::{Child, Command, Stdio},
};

use super::{
    super::{
        command::{enter, explain},
        error::{Error, Result},
        files::{now, random_name},
        folder::{Folder, StartMark},
        names::JOB_VARIABLE,
        processes,
        ready::{say_not_started, say_ready},
        socket::listen,
        spec::{Exit, How},
    },
    run::{Run, Signals},
    spec::PipeSpec,
};

/// Maximum bytes of the variables.
const MAX_VARIABLES: u64 = 8 << 20;

/// Supervises the process of a folder.
pub(crate) fn supervise(folder: &Folder, spec: PipeSpec) -> Result<()> {
    let problem = |doing| Error::io(doing, folder.path());
    // Must stay open, and no other handle of the file may be closed here: that would release the
    // lock.
    let Some(_lock) = folder.hold().map_err(problem("take the lock of"))? else { return Ok(()) };
    if folder.start_mark().map_err(problem("read"))?.is_some() {
        return Ok(());
    }
    let variables = read_variables(io::stdin()).map_err(problem("read the variables for"))?;
    processes::become_reaper().map_err(problem("adopt the processes of"))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(problem("start a runtime for"))?;
    runtime.block_on(async {
        let (listener, socket) = listen(folder).map_err(problem("open a socket for"))?;
        let signals = Signals::new().map_err(problem("handle signals for"))?;
        let start = StartMark { at: now(), mark: format!("{}.{}", folder.id(), random_name()) };
        folder.set_start_mark(&start).map_err(problem("record the start in"))?;
        let (how, stderr_tail) = match start_process(&spec, variables, &start.mark) {
            Ok(child) => {
                let run = Run::new(folder, spec, child);
                say_ready();
                run.until_over(listener, signals).await
            }
            Err(reason) => {
                say_not_started(&reason);
                (How::NotStarted(reason), String::new())
            }
        };
        let _ = fs::remove_file(socket);
        // Without this file, the next gateway settles the folder, and finds no process.
        let _ = folder.set_exit(&Exit { stderr_tail, ..Exit::silent(how, now()) });
        Ok(())
    })
}

/// Reads variables: `NAME=VALUE`, each with a NUL byte at its end.
fn read_variables(input: impl Read) -> io::Result<Vec<(OsString, OsString)>> {
    let mut bytes = Vec::new();
    input.take(MAX_VARIABLES).read_to_end(&mut bytes)?;
    let variable = |text: &[u8]| {
        // The first byte may belong to the name, as in the environment of Windows programs.
        let end = text.iter().skip(1).position(|byte| *byte == b'=')? + 1;
        let (name, value) = (&text[..end], &text[end + 1..]);
        Some((OsStr::from_bytes(name).to_owned(), OsStr::from_bytes(value).to_owned()))
    };
    Ok(bytes.split(|byte| *byte == 0).filter_map(variable).collect())
}

/// Starts the process as the leader of a process group, with these variables and a mark.
fn start_process(
    spec: &PipeSpec,
    variables: Vec<(OsString, OsString)>,
    mark: &str,
) -> Result<Child, String> {
    let Some((program, arguments)) = spec.argv.split_first() else {
        return Err("the command is empty; specify a program".to_owned());
    };
    let mut command = Command::new(program);
    command.args(arguments).env_clear().envs(variables).env(JOB_VARIABLE, mark);
    if let Some(folder) = &spec.working_dir {
        enter(&mut command, folder)?;
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.process_group(0).spawn().map_err(|error| explain(&spec.program(), &error))
}

#[cfg(test)]
mod tests {
    use super::read_variables;

    #[test]
    fn variables_with_any_bytes_are_read() {
        let read = read_variables(&b"A=1\0B=\0C=x=y\nz\0\xff=\xfe\0"[..]).unwrap();
        let names: Vec<_> = read.iter().map(|(name, _)| name.to_string_lossy()).collect();
        assert_eq!(names, ["A", "B", "C", "\u{fffd}"]);
        assert_eq!(read[1].1, "");
        assert_eq!(read[2].1, "x=y\nz");
        assert!(read_variables(&b""[..]).unwrap().is_empty());
    }
}
