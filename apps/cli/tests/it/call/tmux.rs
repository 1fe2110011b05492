//! A terminal for tests: tmux, with a separate tmux server per test.

use std::{
    env,
    process::{self, Command},
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::Instant,
};

use super::stage::{GUARD, Outlive};

const PAUSE: std::time::Duration = std::time::Duration::from_millis(30);

/// A terminal that runs the program. Dropping it closes the terminal.
pub(crate) struct Terminal {
    socket: String,
}

impl Terminal {
    /// Runs the program in a terminal, and prints its exit code there.
    pub(crate) fn run(outlive: &Outlive, arguments: &[&str]) -> Self {
        Self::run_with(outlive, "", arguments, "")
    }

    /// Like `run`, with a shell prefix and suffix around the command.
    pub(crate) fn run_with(
        outlive: &Outlive,
        before: &str,
        arguments: &[&str],
        behind: &str,
    ) -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let terminal = Self { socket: format!("outlive-{}-{number}", process::id()) };
        let words: Vec<String> = arguments.iter().map(|word| quoted(word)).collect();
        let program = quoted(env!("CARGO_BIN_EXE_outlive"));
        let data = quoted(&outlive.folder.file("data"));
        // `cat` keeps the terminal and its contents until the test ends.
        let line = format!(
            "export OUTLIVE_DATA_DIR={data} OUTLIVE_KEYRING=off; {before} {program} {} {behind}; echo EXIT:$?; exec cat",
            words.join(" ")
        );
        terminal.tmux(&["-f", "/dev/null", "new-session", "-d", "-x", "100", "-y", "30", &line]);
        terminal
    }

    /// Runs the program in a terminal, and records every byte of its output in a file.
    ///
    /// `variables` are for its environment: `A=1 B=2`.
    pub(crate) fn record(
        outlive: &Outlive,
        variables: &str,
        arguments: &[&str],
        file: &str,
    ) -> Self {
        // The program starts only after the recording has started.
        let begin = format!("{file}.begin");
        let begin_at = quoted(&begin);
        let wait = format!("while [ ! -e {begin_at} ]; do sleep 0.02; done; env {variables}");
        let terminal = Self::run_with(outlive, &wait, arguments, "");
        terminal.tmux(&["pipe-pane", &format!("cat > {}", quoted(file))]);
        std::fs::write(begin, "").unwrap();
        terminal
    }

    /// Presses keys, named as in tmux.
    pub(crate) fn press(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"][..], keys].concat());
    }

    /// Types a text and presses Enter.
    pub(crate) fn enter(&self, text: &str) {
        self.tmux(&["send-keys", "-l", text]);
        self.press(&["Enter"]);
    }

    pub(crate) fn resize(&self, columns: &str, rows: &str) {
        self.tmux(&["resize-window", "-x", columns, "-y", rows]);
    }

    /// Returns the contents of the screen.
    pub(crate) fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    /// Returns the contents of the screen and the scrollback: shrinking a terminal pushes lines
    /// out.
    pub(crate) fn history(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-S", "-"])
    }

    /// Returns the contents of the screen with color sequences.
    pub(crate) fn colors(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-e"])
    }

    /// Waits until the screen shows a text. Returns the contents of the screen.
    #[track_caller]
    pub(crate) fn until(&self, text: &str) -> String {
        self.until_that(&format!("the screen shows `{text}`"), |screen| screen.contains(text))
    }

    #[track_caller]
    pub(crate) fn until_that(&self, what: &str, is_there: impl Fn(&str) -> bool) -> String {
        let start = Instant::now();
        loop {
            let screen = self.screen();
            if is_there(&screen) {
                return screen;
            }
            assert!(start.elapsed() < GUARD, "timed out waiting until {what}:\n{screen}");
            thread::sleep(PAUSE);
        }
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        let mut tmux =
            Command::new(env::var_os("OUTLIVE_TEST_TMUX").unwrap_or_else(|| "tmux".into()));
        tmux.args(["-u", "-L", &self.socket]).args(arguments).env_remove("TMUX");
        let ran = tmux.env("TERM", "xterm-256color").env("LC_ALL", "C.UTF-8").output();
        let ran = ran.unwrap_or_else(|error| {
            panic!(
                "cannot run tmux ({error}); install it (apt-get install tmux, brew install tmux), \
                    or run `cargo xtask test --only nextest`, which installs it"
            )
        });
        assert!(
            ran.status.success(),
            "tmux {arguments:?}: {}",
            String::from_utf8_lossy(&ran.stderr)
        );
        String::from_utf8_lossy(&ran.stdout).into_owned()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = Command::new("tmux").args(["-L", &self.socket, "kill-server"]).output();
    }
}

fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}
