//! A server process and its connection.

use std::{
    net::SocketAddr,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, copy, duplex, split},
    process::{Child, Command},
    task::JoinHandle,
    time::timeout,
};

use crate::support::pipe::Pipe;

/// Timeout of a process that hangs.
const GUARD: Duration = Duration::from_secs(30);

/// A server process and the pipe to it.
pub(crate) struct Process {
    pub(crate) child: Child,
    pub(crate) pipe: Pipe,
    stderr: JoinHandle<String>,
}

impl Process {
    pub(crate) fn start(program: &str, arguments: &[&str]) -> Self {
        let mut child = command(program, arguments)
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (mut stdin, mut stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut errors = child.stderr.take().unwrap();
        let stderr = tokio::spawn(async move {
            let mut text = String::new();
            errors.read_to_string(&mut text).await.unwrap();
            text
        });
        let (near, far) = duplex(64 << 10);
        let (mut from_us, mut to_us) = split(far);
        // Dropping this end is the only way to close the process's standard input.
        tokio::spawn(async move { copy(&mut from_us, &mut stdin).await });
        tokio::spawn(async move {
            copy(&mut stdout, &mut to_us).await?;
            to_us.shutdown().await
        });
        Self { child, pipe: Pipe::on(near), stderr }
    }

    /// Waits for the exit of the process and returns its standard error.
    pub(crate) async fn ended(mut self) -> (ExitStatus, String) {
        let status = timeout(GUARD, self.child.wait()).await.expect("the process exits").unwrap();
        (status, self.stderr.await.unwrap())
    }

    /// Kills the process with SIGKILL.
    pub(crate) async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }
}

/// A listening server process, killed on drop.
pub(crate) struct Listening {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl Listening {
    /// Starts a program that prints its address.
    pub(crate) async fn start(program: &str, arguments: &[&str]) -> Self {
        // Some programs end with their standard input, which stays open while `child` lives.
        let mut child = command(program, arguments).stdin(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let line = timeout(GUARD, lines.next_line()).await.expect("the process starts").unwrap();
        Self { child, address: line.expect("an address").parse().unwrap() }
    }

    /// Kills the process with SIGKILL.
    pub(crate) async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }
}

fn command(program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).stdout(Stdio::piped()).kill_on_drop(true);
    command
}
