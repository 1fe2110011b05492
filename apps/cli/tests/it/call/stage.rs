//! Helpers that start a server and the program, and stop them on drop.

use std::{
    env, fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{self, Child, Command, Output, Stdio},
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;

/// Timeout of every wait. Only a failing test waits this long.
pub(crate) const GUARD: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(20);

/// Values of `--protocol-version` for the two eras.
pub(crate) const ERAS: [&str; 2] = ["2026-07-28", "2025-11-25"];

/// Temporary folder of a test, deleted on drop.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = env::temp_dir().join(format!("outlive-call-{}-{number}", process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    /// Returns the path of a file in the folder.
    pub(crate) fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    /// Creates a file, so that a tool that waits for it continues.
    pub(crate) fn touch(&self, name: &str) {
        fs::write(self.0.join(name), "").unwrap();
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Returns the path of `examples/stage.rs`, which cargo builds with the tests.
pub(crate) fn program() -> String {
    example("stage")
}

/// Returns the path of an example, which cargo builds with the tests.
pub(crate) fn example(name: &str) -> String {
    let tests = env::current_exe().unwrap();
    let built = tests.parent().and_then(Path::parent).unwrap();
    let program = built.join("examples").join(format!("{name}{}", env::consts::EXE_SUFFIX));
    assert!(program.exists(), "{} is missing; run cargo build --example {name}", program.display());
    program.to_str().unwrap().to_owned()
}

/// A running server.
pub(crate) struct Stage {
    server: Child,
    pub(crate) url: String,
}

impl Stage {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let mut server =
            Command::new(program()).args(arguments).stderr(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(server.stderr.take().unwrap());
        let mut url = String::new();
        said.read_line(&mut url).unwrap();
        // Drain standard error, so that the server does not block on it.
        thread::spawn(move || said.lines().count());
        assert!(url.starts_with("http://"), "{url}");
        Self { server, url: url.trim().to_owned() }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// The program, with a temporary data folder.
pub(crate) struct Outlive {
    pub(crate) folder: Folder,
}

/// Exit code and output of a run of the program.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Outlive {
    pub(crate) fn new() -> Self {
        Self { folder: Folder::new() }
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_outlive"));
        command.args(arguments).env("OUTLIVE_DATA_DIR", self.folder.file("data"));
        // Keeps tests out of the keyring of the user who runs them.
        command.env("OUTLIVE_KEYRING", "off");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs the program to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        Ran::of(self.command(arguments).output().unwrap())
    }

    /// Runs the program, and asserts success and its standard output.
    #[track_caller]
    pub(crate) fn says(&self, arguments: &[&str], out: &str) -> Ran {
        let ran = self.run(arguments);
        assert_eq!((ran.code, ran.out.as_str()), (0, out), "{arguments:?}: {ran:?}");
        ran
    }

    /// Runs the program, and parses the JSON that it prints.
    #[track_caller]
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let ran = self.run(arguments);
        serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
    }

    /// Returns the saved calls.
    pub(crate) fn written(&self) -> Vec<Value> {
        let listed = self.json(&["tasks", "list", "--json", "--offline"]);
        listed.as_array().unwrap().clone()
    }

    /// Waits until a call is a task. Returns its handle.
    pub(crate) fn until_task(&self) -> String {
        let start = Instant::now();
        loop {
            if let Some(call) = self.written().iter().find(|call| call["state"] == "task") {
                return call["handle"].as_str().unwrap().to_owned();
            }
            assert!(start.elapsed() < GUARD, "no call has become a task");
            thread::sleep(PAUSE);
        }
    }
}

impl Ran {
    pub(crate) fn of(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        let code = output.status.code().unwrap_or(-1);
        Self { code, out: text(output.stdout), err: text(output.stderr) }
    }
}
