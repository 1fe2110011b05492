//! Helpers: a data folder, a job in it, and its processes.

use std::{
    fs,
    path::PathBuf,
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use outlive_jobs::{Event, Exit, Job, JobSpec, Jobs};

/// A data folder.
pub(crate) struct Place {
    pub(crate) data: PathBuf,
    pub(crate) jobs: Jobs,
}

impl Place {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("outlive-job-{}-{number}", std::process::id());
        Self::at(std::env::temp_dir().join(name))
    }

    pub(crate) fn at(data: PathBuf) -> Self {
        let jobs = Jobs::open(&data.join("jobs")).unwrap();
        Self { data, jobs: jobs.supervisor_program(env!("CARGO_BIN_EXE_outlive-test-supervisor")) }
    }

    pub(crate) async fn start(&self, spec: &JobSpec) -> Job {
        self.jobs.start_or_find(ID, spec).await.unwrap()
    }

    pub(crate) async fn find(&self) -> Job {
        self.jobs.find(ID).await.unwrap().expect("the job exists")
    }

    /// Runs a command to its end.
    pub(crate) async fn run(&self, spec: &JobSpec) -> (Vec<String>, Exit) {
        read(&mut self.start(spec).await).await
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.data.join("jobs").join(ID).join(name)
    }

    /// Returns the process ID of the supervisor, which is the parent of the command.
    pub(crate) fn supervisor(&self) -> i32 {
        let child = fs::read_to_string(self.file("child")).unwrap();
        let child: serde_json::Value = serde_json::from_str(&child).unwrap();
        ps("ppid", child["pid"].as_i64().unwrap() as i32).parse().unwrap()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.data);
    }
}

/// ID of the only job of a test.
pub(crate) const ID: &str = "5eed";

/// Returns a specification that runs a shell script.
pub(crate) fn sh(script: &str) -> JobSpec {
    let mut spec = JobSpec::new(["sh", "-c", script]);
    // Limits the lifetime of processes that a failing test leaves behind.
    spec.orphan_timeout = Some(Duration::from_secs(60));
    spec
}

/// Returns all remaining lines and the exit.
pub(crate) async fn read(job: &mut Job) -> (Vec<String>, Exit) {
    let mut lines = Vec::new();
    loop {
        match job.next().await.unwrap() {
            Event::Line(line) => lines.push(String::from_utf8(line.bytes).unwrap()),
            Event::Exit(exit) => return (lines, exit),
            _ => {}
        }
    }
}

/// Returns the next line.
pub(crate) async fn line(job: &mut Job) -> String {
    loop {
        match job.next().await.unwrap() {
            Event::Line(line) => return String::from_utf8(line.bytes).unwrap(),
            Event::Exit(exit) => panic!("no further line: {exit:?}"),
            _ => {}
        }
    }
}

/// Returns whether a process exists and is not a zombie.
pub(crate) fn lives(pid: &str) -> bool {
    let state = ps("stat", pid.parse().unwrap());
    !state.is_empty() && !state.starts_with('Z')
}

/// Returns a field of `ps` for a process.
pub(crate) fn ps(what: &str, pid: i32) -> String {
    let said =
        Command::new("ps").args(["-o", &format!("{what}="), "-p", &pid.to_string()]).output();
    String::from_utf8(said.unwrap().stdout).unwrap().trim().to_owned()
}

pub(crate) fn kill(pid: i32) {
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

/// Polls until a condition holds.
pub(crate) async fn until(mut what: impl FnMut() -> bool) {
    while !what() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
