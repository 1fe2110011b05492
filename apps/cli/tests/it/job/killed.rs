//! Servers and supervisors that are killed.

use std::{
    env,
    io::{BufRead, BufReader, Write},
    process::{Command, Stdio},
    time::Duration,
};

use outlive_cli::job::{How, Position, State};

use super::{ID, Place, kill, line, lives, read, sh, until};

/// Prints slowly enough to be interrupted.
const COUNTER: &str = "i=0; while [ $i -lt 200 ]; do i=$((i+1)); echo $i; sleep 0.005; done";

/// This test is two processes: it starts itself again as a server that reads and is killed.
#[tokio::test]
async fn a_command_goes_on_when_its_server_is_killed_and_is_read_on() {
    const ROLE: &str = "OUTLIVE_TEST_READER";
    if let Some(data) = env::var_os(ROLE) {
        let place = Place::at(data.into());
        let mut job = place.start(&sh(COUNTER)).await;
        loop {
            writeln!(std::io::stderr(), "read {}", line(&mut job).await).unwrap();
        }
    }
    let place = Place::new();
    let this = "job::killed::a_command_goes_on_when_its_server_is_killed_and_is_read_on";
    let mut server = Command::new(env::current_exe().unwrap())
        .args(["--exact", this, "--nocapture"])
        .env(ROLE, &place.data)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
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

#[tokio::test]
async fn several_read_the_same_job_each_from_its_own_place() {
    let place = Place::new();
    let mut first = place.start(&sh("echo one; echo two; echo three; sleep 0.1; echo four")).await;
    assert_eq!(line(&mut first).await, "one");
    let place_of_first: Position = first.position();
    let mut second = place.find().await.at(place_of_first);
    let mut third = place.find().await.after_line(3);
    assert_eq!(read(&mut third).await.0, ["four"]);
    assert_eq!(read(&mut second).await.0, ["two", "three", "four"]);
    assert_eq!(read(&mut first).await.0, ["two", "three", "four"]);
}

#[tokio::test]
async fn when_the_supervisor_is_killed_the_job_is_lost_and_nothing_is_left() {
    let place = Place::new();
    // One child ignores the request to end, and all go on without their output.
    let script = "trap '' TERM PIPE; echo problem >&2; sleep 1000 & echo $!; echo $$; while :; do sleep 0.01; done";
    let mut spec = sh(script);
    spec.end_grace = Duration::from_millis(100);
    let mut job = place.start(&spec).await;
    let processes = [line(&mut job).await, line(&mut job).await];
    kill(place.supervisor());
    let (lines, exit) = read(&mut job).await;
    assert!(lines.is_empty());
    assert_eq!(exit.how, How::Lost);
    assert_eq!(exit.stderr_tail, "problem\n");
    assert!(!processes.iter().any(|process| lives(process)));
    // It stays so.
    assert!(matches!(place.jobs.list().unwrap()[0].state, State::Ended { .. }));
    assert_eq!(read(&mut place.find().await).await.1, exit);
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn when_the_supervisor_is_killed_sessions_of_their_own_do_not_survive() {
    let place = Place::new();
    let script = "setsid sh -c 'echo $$; exec sleep 1000' & wait";
    let mut job = place.start(&sh(script)).await;
    let daemon = line(&mut job).await;
    kill(place.supervisor());
    until(|| place.jobs.list().unwrap()[0].state == State::Lost).await;
    assert!(place.jobs.forget(ID).is_err(), "its processes may be there");
    job.end().await.unwrap();
    assert!(!lives(&daemon));
    assert_eq!(read(&mut job).await.1.how, How::Lost);
}

#[tokio::test]
async fn after_a_restart_of_the_machine_nobody_is_ended() {
    let place = Place::new();
    let mut innocent = Command::new("sleep").arg("1000").spawn().unwrap();
    std::fs::create_dir(place.data.join("jobs").join(ID)).unwrap();
    let spec = serde_json::to_vec(&sh("sleep 1000")).unwrap();
    std::fs::write(place.file("spec.json"), spec).unwrap();
    std::fs::write(place.file("begun"), r#"{"at":1,"mark":"5eed.0"}"#).unwrap();
    let child = format!(r#"{{"pid":{},"started":"1","boot":"another"}}"#, innocent.id());
    std::fs::write(place.file("child"), child).unwrap();
    assert_eq!(read(&mut place.find().await).await.1.how, How::Lost);
    assert!(lives(&innocent.id().to_string()));
    innocent.kill().unwrap();
    innocent.wait().unwrap();
}

#[tokio::test]
async fn a_supervisor_that_is_asked_to_end_ends_its_command_first() {
    let place = Place::new();
    let mut job = place.start(&sh("echo $$; sleep 1000")).await;
    let command = line(&mut job).await;
    let supervisor = rustix::process::Pid::from_raw(place.supervisor()).unwrap();
    rustix::process::kill_process(supervisor, rustix::process::Signal::TERM).unwrap();
    assert_eq!(read(&mut job).await.1.how, How::Lost);
    assert!(!lives(&command));
}
