//! A command of this program that runs beside others, at the lowest priority.

use std::env;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use xtask::process::target_folder;

/// A running command. Dropping it ends the command.
pub(crate) struct Beside {
    child: Child,
    /// File with the output of the command.
    output: PathBuf,
    started: Instant,
}

impl Beside {
    /// Starts `cargo xtask WORDS`.
    pub(crate) fn start(words: &[&str]) -> Result<Self> {
        let output = target_folder().join(format!("beside-{}.log", words.join("-")));
        let file = File::create(&output)
            .with_context(|| format!("could not create {}", output.display()))?;
        let program = env::current_exe().context("the path of this program is unknown")?;
        let mut command = if cfg!(unix) { Command::new("nice") } else { Command::new(&program) };
        if cfg!(unix) {
            command.args(["-n", "19"]).arg(program);
        }
        command.args(words).stdout(file.try_clone()?).stderr(file);
        let child = command.spawn().context("could not start a command beside the others")?;
        Ok(Self { child, output, started: Instant::now() })
    }

    /// Waits for the end of the command and prints its output. Returns its duration.
    pub(crate) fn join(mut self) -> Result<Duration> {
        let status = self.child.wait()?;
        eprint!("{}", fs::read_to_string(&self.output).unwrap_or_default());
        ensure!(status.success(), "the command ended with {status}");
        Ok(self.started.elapsed())
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // After `join`, the process has ended, and both calls have no effect.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::Beside;

    // This program is the one of the tests here.
    #[test]
    fn failed_command_is_an_error() {
        assert!(Beside::start(&["--list"]).unwrap().join().is_ok());
        assert!(Beside::start(&["--no-such-option"]).unwrap().join().is_err());
    }
}
