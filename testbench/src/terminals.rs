//! Terminals in which a test types as a person does: windows of tmux.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use xtask::packages;

/// Starts tmux with a window into which the lines of commands and logs fit.
const FIRST: &[&str] = &["-f", "/dev/null", "new-session", "-d", "-x", "180", "-y", "50"];
const NEXT: &[&str] = &["new-window", "-d"];

/// Time for a text to appear.
const LIMIT: Duration = Duration::from_secs(40);
const PAUSE: Duration = Duration::from_millis(50);

/// Windows with a shell each. Dropping them ends the shells and what runs in them.
#[derive(Debug)]
pub(crate) struct Terminals {
    tmux: PathBuf,
    socket: PathBuf,
}

impl Terminals {
    /// Opens windows with these names in a folder. `socket` is a file of tmux.
    pub(crate) fn open(
        names: &[&str],
        folder: &Path,
        socket: PathBuf,
        environment: &[(String, OsString)],
    ) -> Result<Self> {
        let terminals = Self { tmux: packages::ensure(&packages::TMUX)?, socket };
        let folder = folder.display().to_string();
        for (index, name) in names.iter().enumerate() {
            let mut command = terminals.command();
            command.args(if index == 0 { FIRST } else { NEXT });
            command.args(["-n", name, "-c", &folder, "env", "PS1=$ ", "sh"]);
            terminals.run(command.envs(environment.iter().cloned()))?;
        }
        Ok(terminals)
    }

    /// Types a line into a window whose contents are removed first.
    pub(crate) fn enter(&self, window: &str, line: &str) -> Result<()> {
        let target = format!(":{window}");
        self.tmux(&["send-keys", "-R", "-t", &target])?;
        self.tmux(&["clear-history", "-t", &target])?;
        self.tmux(&["send-keys", "-t", &target, "-l", line])?;
        self.press(window, &["Enter"])
    }

    /// Presses keys, named as in tmux.
    pub(crate) fn press(&self, window: &str, keys: &[&str]) -> Result<()> {
        let target = format!(":{window}");
        self.tmux(&[&["send-keys", "-t", &target], keys].concat()).map(drop)
    }

    /// Returns what a window has shown since the last line that was typed.
    pub(crate) fn shown(&self, window: &str) -> Result<String> {
        self.tmux(&["capture-pane", "-p", "-J", "-S", "-", "-t", &format!(":{window}")])
    }

    /// Waits until a window shows a text a number of times, and returns all that it shows.
    pub(crate) fn until(&self, window: &str, text: &str, times: usize) -> Result<String> {
        let start = Instant::now();
        loop {
            let shown = self.shown(window)?;
            if shown.matches(text).count() >= times {
                return Ok(shown);
            }
            if start.elapsed() > LIMIT {
                let shown = shown.trim_end();
                bail!("the {window} does not show `{text}` {times} times, but:\n{shown}");
            }
            thread::sleep(PAUSE);
        }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.tmux);
        command.arg("-u").arg("-S").arg(&self.socket).env_remove("TMUX");
        command.env("TERM", "xterm-256color").env("LC_ALL", "C.UTF-8");
        command
    }

    fn tmux(&self, arguments: &[&str]) -> Result<String> {
        self.run(self.command().args(arguments))
    }

    fn run(&self, command: &mut Command) -> Result<String> {
        let output = command.output()?;
        if !output.status.success() {
            bail!("tmux failed: {}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

impl Drop for Terminals {
    fn drop(&mut self) {
        // Without a server, there is nothing to end.
        let _ = self.tmux(&["kill-server"]);
    }
}
