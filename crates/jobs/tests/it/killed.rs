//! Tests of servers and supervisors that are killed.

use std::{
    env, fs,
    io::{BufRead, BufReader, Write},
    mem,
    process::{Child, Command, Stdio},
    time::Duration,
};

use outlive_jobs::{Event, How, JobSpec, Position, State};

use crate::{
    inputs::{ASK, asks, input},
    support::{ID, Place, kill, line, lives, ps, read, sh, until},
};

/// Prints slowly enough to be interrupted.
const COUNTER: &str = "i=0; while [ $i -lt 200 ]; do i=$((i+1)); echo $i; sleep 0.005; done";

/// Runs this test in a separate process, which gets the data folder and is killed.
fn start_again(test: &str, place: &Place) -> Child {
    Command::new(env::current_exe().unwrap())
        .args(["--exact", &format!("killed::{test}"), "--nocapture"])
        .env(ROLE, &place.data)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Variable with the data folder of such a process.
const ROLE: &str = "OUTLIVE_TEST_DATA";

#[tokio::test]
async fn command_survives_its_server_and_is_read_by_the_next() {
    if let Some(data) = env::var_os(ROLE) {
        let place = Place::at(data.into());
        let mut job = place.start(&sh(COUNTER)).await;
        loop {
            writeln!(std::io::stderr(), "read {}", line(&mut job).await).unwrap();
        }
    }
    let place = Place::new();
    let test = "command_survives_its_server_and_is_read_by_the_next";
    let mut server = start_again(test, &place);
    let mut heard = BufReader::new(server.stderr.take().unwrap()).lines();
    assert!(heard.any(|line| line.unwrap() == "read 20"));
    server.kill().unwrap();
    server.wait().unwrap();

    let mut job = place.find().await.after_line(20);
    assert_eq!(place.jobs.list().unwrap()[0].state, State::Running);
    let (lines, exit) = read(&mut job).await;
    let expected: Vec<String> = (21..=200).map(|number| number.to_string()).collect();
    assert_eq!(lines, expected);
    assert_eq!(exit.how, How::Code(0));
}

/// Prints ten thousand lines in about three seconds.
const MANY: &str =
    "i=0; while [ $i -lt 10000 ]; do i=$((i+1)); echo $i; [ $((i%100)) -ne 0 ] || sleep 0.03; done";

#[tokio::test]
async fn fifty_killed_servers_read_each_line_once() {
    /// Continues reading after the lines that were read before, and records each line.
    async fn read_rest(place: &Place) -> How {
        let mut seen =
            fs::File::options().append(true).create(true).open(place.data.join("seen")).unwrap();
        let count = fs::read_to_string(place.data.join("seen")).unwrap().lines().count();
        let mut job = place.start(&sh(MANY)).await.after_line(count as u64);
        loop {
            match job.next().await.unwrap() {
                // One write, which either happens or not when the process is killed.
                Event::Line(line) => seen.write_all(&[&line.bytes[..], b"\n"].concat()).unwrap(),
                Event::Exit(exit) => return exit.how,
                _ => {}
            }
        }
    }
    if let Some(data) = env::var_os(ROLE) {
        let place = Place::at(data.into());
        read_rest(&place).await;
        // The parent process removes the folder.
        mem::forget(place);
        return;
    }
    let place = Place::new();
    for kill in 0..50 {
        let mut server = start_again("fifty_killed_servers_read_each_line_once", &place);
        // The delay determines where the server is killed.
        tokio::time::sleep(Duration::from_millis(20 + kill % 17 * 3)).await;
        server.kill().unwrap();
        server.wait().unwrap();
    }
    assert_eq!(read_rest(&place).await, How::Code(0));
    let seen = fs::read_to_string(place.data.join("seen")).unwrap();
    let expected: Vec<String> = (1..=10_000).map(|number| number.to_string()).collect();
    assert!(seen.lines().eq(expected), "lines are missing or duplicated");
}

/// Returns a command that records each run in a file.
fn tracing(place: &Place) -> JobSpec {
    sh(&format!("echo ran >> {}; echo done", place.data.join("ran").display()))
}

fn runs(place: &Place) -> usize {
    fs::read_to_string(place.data.join("ran")).unwrap_or_default().lines().count()
}

#[tokio::test]
async fn command_of_a_killed_server_runs_once() {
    if let Some(data) = env::var_os(ROLE) {
        let place = Place::at(data.into());
        let (_, exit) = place.run(&tracing(&place)).await;
        assert_eq!(exit.how, How::Code(0));
        // The parent process removes the folder.
        mem::forget(place);
        return;
    }
    for delay in 0..24 {
        let place = Place::new();
        let mut server = start_again("command_of_a_killed_server_runs_once", &place);
        // The delay determines where the server is killed, a little later each time.
        tokio::time::sleep(Duration::from_millis(2 * delay)).await;
        server.kill().unwrap();
        let (lines, exit) = place.run(&tracing(&place)).await;
        assert_eq!((lines, exit.how), (vec!["done".to_owned()], How::Code(0)));
        assert_eq!(runs(&place), 1, "killed after {delay} times 2 ms");
        server.wait().unwrap();
    }
}

#[tokio::test]
async fn command_of_a_killed_supervisor_runs_at_most_once() {
    for delay in 0..32 {
        let place = Place::new();
        claim(&place, &tracing(&place));
        let mut supervisor = Command::new(env!("CARGO_BIN_EXE_outlive-test-supervisor"))
            .arg("__supervise")
            .arg(place.file(""))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // The delay determines where the supervisor is killed, a little later each time.
        tokio::time::sleep(Duration::from_millis(delay)).await;
        supervisor.kill().unwrap();
        supervisor.wait().unwrap();
        let (_, exit) = place.run(&tracing(&place)).await;
        match exit.how {
            How::Code(0) => assert_eq!(runs(&place), 1, "killed after {delay} ms"),
            How::Lost => assert!(runs(&place) <= 1, "killed after {delay} ms"),
            other => panic!("killed after {delay} ms: {other:?}"),
        }
    }
}

/// Creates the files of a server that was killed right after it created the job.
fn claim(place: &Place, spec: &JobSpec) {
    fs::create_dir(place.file("")).unwrap();
    fs::write(place.file("spec.json"), serde_json::to_vec(spec).unwrap()).unwrap();
}

#[tokio::test]
async fn several_readers_read_a_job_from_their_own_positions() {
    let place = Place::new();
    let mut first = place.start(&sh("echo one; echo two; echo three; sleep 0.1; echo four")).await;
    assert_eq!(line(&mut first).await, "one");
    let place_of_first: Position = first.position();
    let mut second = place.find().await.read_from(place_of_first);
    let mut third = place.find().await.after_line(3);
    assert_eq!(read(&mut third).await.0, ["four"]);
    assert_eq!(read(&mut second).await.0, ["two", "three", "four"]);
    assert_eq!(read(&mut first).await.0, ["two", "three", "four"]);
}

#[tokio::test]
async fn more_readers_than_connections_read_all_lines() {
    let place = Place::new();
    let mut first = place.start(&sh("echo one; sleep 0.3; echo two")).await;
    assert_eq!(line(&mut first).await, "one");
    let mut readers = tokio::task::JoinSet::new();
    for _ in 0..100 {
        let jobs = place.jobs.clone();
        readers.spawn(async move {
            let mut job = jobs.find(ID).await.unwrap().unwrap();
            read(&mut job).await.0
        });
    }
    drop(first);
    for lines in readers.join_all().await {
        assert_eq!(lines, ["one", "two"]);
    }
}

#[tokio::test]
async fn killed_supervisor_loses_the_job_and_leaves_no_process() {
    let place = Place::new();
    // One child ignores SIGTERM, and all ignore the closed output.
    let script = "trap '' TERM PIPE; echo problem >&2; sleep 1000 & echo $!; echo $$; while :; do sleep 0.01; done";
    let mut spec = sh(script);
    spec.kill_grace = Duration::from_millis(100);
    let mut job = place.start(&spec).await;
    let processes = [line(&mut job).await, line(&mut job).await];
    kill(place.supervisor());
    let (lines, exit) = read(&mut job).await;
    assert!(lines.is_empty());
    assert_eq!(exit.how, How::Lost);
    assert_eq!(exit.stderr_tail, "problem\n");
    assert!(!processes.iter().any(|process| lives(process)));
    // The exit does not change.
    assert!(matches!(place.jobs.list().unwrap()[0].state, State::Ended { .. }));
    assert_eq!(read(&mut place.find().await).await.1, exit);
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn killed_supervisor_leaves_no_process_in_a_separate_session() {
    let place = Place::new();
    let script = "setsid sh -c 'echo $$; exec sleep 1000' & wait";
    let mut job = place.start(&sh(script)).await;
    let daemon = line(&mut job).await;
    kill(place.supervisor());
    until(|| place.jobs.list().unwrap()[0].state == State::Lost).await;
    assert!(place.jobs.remove(ID).is_err(), "processes of the job may still run");
    job.end().await.unwrap();
    assert!(!lives(&daemon));
    assert_eq!(read(&mut job).await.1.how, How::Lost);
}

#[tokio::test]
async fn process_with_a_reused_id_after_a_reboot_is_not_killed() {
    let place = Place::new();
    let mut innocent = Command::new("sleep").arg("1000").spawn().unwrap();
    claim(&place, &sh("sleep 1000"));
    fs::write(place.file("begun"), r#"{"at":1,"mark":"5eed.0"}"#).unwrap();
    let child = format!(r#"{{"pid":{},"started":"1","boot":"another"}}"#, innocent.id());
    fs::write(place.file("child"), child).unwrap();
    assert_eq!(read(&mut place.find().await).await.1.how, How::Lost);
    assert!(lives(&innocent.id().to_string()));
    innocent.kill().unwrap();
    innocent.wait().unwrap();
}

#[tokio::test]
async fn supervisor_that_gets_sigterm_ends_its_command_first() {
    let place = Place::new();
    let mut job = place.start(&sh("echo $$; sleep 1000")).await;
    let command = line(&mut job).await;
    let supervisor = rustix::process::Pid::from_raw(place.supervisor()).unwrap();
    rustix::process::kill_process(supervisor, rustix::process::Signal::TERM).unwrap();
    assert_eq!(read(&mut job).await.1.how, How::Lost);
    assert!(!lives(&command));
}

#[tokio::test]
async fn supervisor_ignores_sighup_and_sigint() {
    let place = Place::new();
    let mut job = place.start(&asks(&format!("{ASK}; read -r go <&4; echo end"))).await;
    input(&mut job).await;
    let supervisor = rustix::process::Pid::from_raw(place.supervisor()).unwrap();
    for signal in [rustix::process::Signal::HUP, rustix::process::Signal::INT] {
        rustix::process::kill_process(supervisor, signal).unwrap();
    }
    job.respond(1, "go").await.unwrap();
    let (lines, exit) = read(&mut job).await;
    assert_eq!((lines, exit.how), (vec!["end".to_owned()], How::Code(0)));
    // The supervisor exits and is reaped.
    until(|| ps("stat", supervisor.as_raw_nonzero().get()).is_empty()).await;
}
