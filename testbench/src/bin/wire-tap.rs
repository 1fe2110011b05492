//! Starts a server on stdio and records its messages: `wire-tap FILE PROGRAM ARGUMENT…`.
//!
//! The file gets one line per message, before the message is passed on. The program ends with the
//! server, and with its exit code.

use std::{
    env,
    error::Error,
    fs::{File, OpenOptions},
    io::{BufRead, BufReader, Read, Write},
    process::{Command, ExitCode, Stdio},
    thread,
};

use serde_json::{Value, json};

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let mut arguments = env::args_os().skip(1);
    let usage = "usage: wire-tap FILE PROGRAM ARGUMENT…";
    let path = arguments.next().ok_or(usage)?;
    let file = OpenOptions::new().create(true).append(true).open(path)?;
    let mut server = Command::new(arguments.next().ok_or(usage)?)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let stdin = server.stdin.take().ok_or("the server has a standard input")?;
    let stdout = server.stdout.take().ok_or("the server has a standard output")?;
    let requests = file.try_clone()?;
    // Ends with the standard input of this process, and closes that of the server.
    thread::spawn(move || copy("client", std::io::stdin(), stdin, &requests));
    copy("server", stdout, std::io::stdout(), &file);
    let code = server.wait()?.code().and_then(|code| u8::try_from(code).ok());
    Ok(ExitCode::from(code.unwrap_or(1)))
}

/// Copies lines until one side is closed, and records those that are JSON.
fn copy(from: &str, source: impl Read, mut target: impl Write, mut file: &File) {
    for line in BufReader::new(source).split(b'\n').map_while(Result::ok) {
        if let Ok(message) = serde_json::from_slice::<Value>(&line) {
            // One write each, so that the lines of both directions stay whole.
            let _ = file
                .write_all(format!("{}\n", json!({"from": from, "message": message})).as_bytes());
        }
        if target.write_all(&[&line[..], b"\n"].concat()).and_then(|()| target.flush()).is_err() {
            return;
        }
    }
}
