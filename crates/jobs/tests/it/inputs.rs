//! Tests of standard input, input requests and their responses.

use std::time::Duration;

use outlive_jobs::{ControlMode, Event, How, InputLine, Job, JobSpec};

use crate::support::{Place, line, read, sh, until};

pub(super) fn asks(script: &str) -> JobSpec {
    let mut spec = sh(script);
    spec.interactive = true;
    spec
}

/// Requests input on descriptor 3.
pub(super) const ASK: &str = r#"echo '{"input":"who","message":"who?"}' >&3"#;

/// Returns the next input request, and the lines before it.
pub(super) async fn input(job: &mut Job) -> (Vec<String>, u32, InputLine) {
    let mut lines = Vec::new();
    loop {
        match job.next().await.unwrap() {
            Event::Line(line) => lines.push(String::from_utf8(line.bytes).unwrap()),
            Event::Input { number, request } => return (lines, number, request),
            Event::Exit(exit) => panic!("no further input request: {exit:?}"),
            _ => {}
        }
    }
}

fn waits(place: &Place) -> bool {
    place.jobs.list().unwrap()[0].waits_for.is_some()
}

#[tokio::test]
async fn command_reads_its_input_to_the_end() {
    let mut spec = JobSpec::new(["cat"]);
    spec.stdin = Some("one\ntwo".to_owned());
    let (lines, exit) = Place::new().run(&spec).await;
    assert_eq!(lines, ["one", "two"]);
    assert_eq!(exit.how, How::Code(0));
    // Without input, standard input is empty.
    let (lines, _) = Place::new().run(&JobSpec::new(["cat"])).await;
    assert!(lines.is_empty());
}

#[tokio::test]
async fn command_that_never_reads_its_input_can_exit() {
    let mut spec = sh("echo started; exit 3");
    spec.stdin = Some("much ".repeat(1_000_000));
    let (lines, exit) = Place::new().run(&spec).await;
    assert_eq!(lines, ["started"]);
    assert_eq!(exit.how, How::Code(3));
}

#[tokio::test]
async fn only_the_first_response_to_each_request_counts() {
    let place = Place::new();
    let script = r#"echo '{"input":"a","message":"A?"}' >&3; echo '{"input":"b","message":"B?"}' >&3
        read -r one <&4; read -r two <&4; echo "$one"; echo "$two"; read -r three <&4; echo "end $three""#;
    let mut job = place.start(&asks(script)).await;
    let (_, a, request) = input(&mut job).await;
    assert_eq!((a, request.key.as_str(), request.message.as_str()), (1, "a", "A?"));
    let (_, b, request) = input(&mut job).await;
    assert_eq!((b, request.key.as_str()), (2, "b"));
    assert!(waits(&place));
    job.respond(b, "to b").await.unwrap();
    job.respond(b, "to b again").await.unwrap();
    assert!(waits(&place));
    job.respond(a, "to a").await.unwrap();
    job.respond(a, "to a again").await.unwrap();
    assert_eq!(line(&mut job).await, "to b");
    assert_eq!(line(&mut job).await, "to a");
    assert!(!waits(&place));
    let refused = job.respond(3, "no such request").await.unwrap_err().to_string();
    assert!(refused.contains("does not exist"), "{refused}");
    assert!(job.respond(1, "two\nlines").await.is_err());
    job.end().await.unwrap();
    // The command has ended; a late response is not an error.
    job.respond(3, "late").await.unwrap();
}

#[tokio::test]
async fn open_key_used_twice_is_rejected_at_once() {
    let place = Place::new();
    let script =
        format!("{ASK}; {ASK}; read -r said <&4; echo \"$said\"; read -r said <&4; echo \"$said\"");
    let mut job = place.start(&asks(&script)).await;
    let (_, number, _) = input(&mut job).await;
    let said = line(&mut job).await;
    assert!(said.starts_with(r#"{"rejected":"who","kind":"duplicate_key""#), "{said}");
    job.respond(number, "Ada").await.unwrap();
    assert_eq!(line(&mut job).await, "Ada");
}

#[tokio::test]
async fn settled_key_can_be_used_again() {
    let place = Place::new();
    let script = format!("{ASK}; read -r a <&4; {ASK}; read -r b <&4; echo \"$a $b\"");
    let mut job = place.start(&asks(&script)).await;
    for (number, name) in [(1, "Ada"), (2, "Grace")] {
        let (_, asked, _) = input(&mut job).await;
        assert_eq!(asked, number);
        job.respond(number, name).await.unwrap();
    }
    assert_eq!(line(&mut job).await, "Ada Grace");
}

#[tokio::test]
async fn response_that_the_command_does_not_read_is_ignored() {
    let place = Place::new();
    let mut job = place.start(&asks(&format!("exec 4<&-; {ASK}; sleep 0.1; echo end"))).await;
    let (_, number, _) = input(&mut job).await;
    job.respond(number, "hello?").await.unwrap();
    let (lines, exit) = read(&mut job).await;
    assert_eq!((lines, exit.how), (vec!["end".to_owned()], How::Code(0)));
}

#[tokio::test]
async fn timeout_is_paused_while_a_request_is_open() {
    let place = Place::new();
    let mut spec = asks(&format!("{ASK}; read -r who <&4; echo \"hello $who\"; sleep 1000"));
    spec.timeout = Some(Duration::from_secs(1));
    let mut job = place.start(&spec).await;
    let (_, number, _) = input(&mut job).await;
    // Twice the timeout.
    let waited = tokio::time::timeout(Duration::from_secs(2), job.next()).await;
    assert!(waited.is_err(), "{waited:?}");
    job.respond(number, "Ada").await.unwrap();
    let (lines, exit) = read(&mut job).await;
    assert_eq!(lines, ["hello Ada"]);
    assert_eq!(exit.how, How::TimedOut);
}

#[tokio::test]
async fn invalid_message_is_rejected_and_opens_no_request() {
    let place = Place::new();
    let script = r#"for line in '{"tell":"x"}' hello '{"input":3,"message":"x"}' '{"input":"k","message":"x","feilds":{}}'; do
        echo "$line" >&3; read -r said <&4; echo "$said"; done; read -r more <&4"#;
    let mut job = place.start(&asks(script)).await;
    for _ in 0..4 {
        let said = line(&mut job).await;
        assert!(said.contains(r#""kind":"invalid""#), "{said}");
    }
    assert!(!waits(&place));
    job.end().await.unwrap();
}

#[tokio::test]
async fn request_of_a_tool_that_is_not_interactive_is_rejected() {
    let place = Place::new();
    let script = format!("{ASK}; read -r said <&4; echo \"$said\"");
    let (lines, _) = place.run(&sh(&script)).await;
    assert!(lines[0].contains(r#""kind":"not_interactive""#), "{lines:?}");
    assert!(lines[0].contains("interactive = true"), "{lines:?}");
}

#[tokio::test]
async fn planted_message_on_the_standard_streams_is_output() {
    for control in [ControlMode::Descriptors, ControlMode::Stdout] {
        let place = Place::new();
        let nonce = "0".repeat(32);
        let script = format!(
            r#"echo '@outlive {{"ask":"x"}}'; echo '{{"input":"a","message":"x"}}'; echo '{{"nonce":"{nonce}","input":"a","message":"x"}}'
            echo '{{"nonce":"{nonce}","progress":1}}' >&2; echo go; exec sleep 1000"#
        );
        let mut spec = asks(&script);
        spec.control = control;
        let mut job = place.start(&spec).await;
        let mut lines = Vec::new();
        while lines.last().is_none_or(|line| line != "go") {
            lines.push(line(&mut job).await);
        }
        assert_eq!(lines.len(), 4, "{lines:?}");
        assert!(!waits(&place));
        job.end().await.unwrap();
    }
}

#[tokio::test]
async fn request_on_stdout_needs_the_nonce_and_its_response_is_on_stdin() {
    let place = Place::new();
    let mut spec = asks(
        r#"echo before; echo "{\"nonce\":\"$OUTLIVE_CONTROL_NONCE\",\"input\":\"who\",\"message\":\"who?\"}"
        read -r who; echo "hello $who ${OUTLIVE_REQUEST_FD-none}""#,
    );
    spec.control = ControlMode::Stdout;
    let mut job = place.start(&spec).await;
    let (lines, number, request) = input(&mut job).await;
    assert_eq!((lines, request.key.as_str()), (vec!["before".to_owned()], "who"));
    job.respond(number, "Ada").await.unwrap();
    let (lines, exit) = read(&mut job).await;
    assert_eq!((lines, exit.how), (vec!["hello Ada none".to_owned()], How::Code(0)));
}

#[tokio::test]
async fn standard_input_and_requests_work_together_on_descriptors() {
    let place = Place::new();
    let mut spec = asks(&format!("read -r first; {ASK}; read -r who <&4; echo \"$first $who\""));
    spec.stdin = Some("hello\n".to_owned());
    let mut job = place.start(&spec).await;
    let (_, number, _) = input(&mut job).await;
    job.respond(number, "Ada").await.unwrap();
    assert_eq!(line(&mut job).await, "hello Ada");
}

#[tokio::test]
async fn output_printed_before_a_request_is_read_before_it() {
    let place = Place::new();
    let script = r#"n=0; while [ $n -lt 200 ]; do n=$((n+1)); echo "line $n"; printf "part $n "
        echo "{\"input\":\"k$n\",\"message\":\"?\"}" >&3; read -r a <&4; echo "got $a"; done"#;
    let mut job = place.start(&asks(script)).await;
    let mut begins = None;
    for number in 1..=200_u32 {
        let (lines, asked, request) = input(&mut job).await;
        assert_eq!((asked, request.key), (number, format!("k{number}")));
        let expected: Vec<String> = begins
            .into_iter()
            .chain([format!("line {number}"), format!("part {number} ")])
            .collect();
        assert_eq!(lines, expected);
        job.respond(number, &format!("a{number}")).await.unwrap();
        begins = Some(format!("got a{number}"));
    }
    let (lines, _) = read(&mut job).await;
    assert_eq!(lines, ["got a200"]);
    // A later reader gets the same order.
    let mut again = place.find().await;
    for number in 1..=200_u32 {
        let (lines, asked, _) = input(&mut again).await;
        assert_eq!((asked, lines.last().unwrap()), (number, &format!("part {number} ")));
    }
}

#[tokio::test]
async fn request_after_the_output_limit_follows_the_newest_output() {
    let place = Place::new();
    let mut spec = asks(&format!(
        "seq 1 1000; {ASK}; read -r a <&4; seq 1001 2000; {ASK}; read -r b <&4; echo end"
    ));
    spec.max_output_lines = 40;
    let mut job = place.start(&spec).await;
    for (number, last) in [(1, "1000"), (2, "2000")] {
        let (lines, asked, _) = input(&mut job).await;
        assert_eq!((asked, lines.last().map(String::as_str)), (number, Some(last)));
        assert!(lines.len() <= 40, "{}", lines.len());
        job.respond(number, "go").await.unwrap();
    }
    let (lines, exit) = read(&mut job).await;
    assert_eq!(lines, ["end"]);
    assert!(exit.lines_dropped > 1_900, "{}", exit.lines_dropped);
}

#[tokio::test]
async fn second_server_reads_the_request_and_responds() {
    let place = Place::new();
    let job = place.start(&asks(&format!("{ASK}; read -r who <&4; echo \"hello $who\""))).await;
    until(|| waits(&place)).await;
    drop(job);
    let mut job = place.find().await;
    let (_, number, _) = input(&mut job).await;
    job.respond(number, "Grace").await.unwrap();
    assert_eq!(line(&mut job).await, "hello Grace");
}

/// Drops a job that waits for input, and waits until the supervisor ends it as abandoned.
async fn abandon(spec: &JobSpec) {
    let place = Place::new();
    let mut job = place.start(spec).await;
    input(&mut job).await;
    drop(job);
    until(|| !place.jobs.may_run(crate::support::ID).unwrap()).await;
    assert_eq!(read(&mut place.find().await).await.1.how, How::Abandoned);
}

#[tokio::test]
async fn abandoned_request_ends_its_command() {
    let place = Place::new();
    let mut spec = asks(&format!("{ASK}; read -r who <&4; echo \"hello $who\""));
    spec.abandon_timeout = Some(Duration::from_millis(400));
    let mut job = place.start(&spec).await;
    let (_, number, _) = input(&mut job).await;
    abandon(&spec).await;
    // This job has waited longer, but a reader follows it.
    job.respond(number, "Ada").await.unwrap();
    assert_eq!(read(&mut job).await.0, ["hello Ada"]);
}

#[tokio::test]
async fn request_of_a_task_is_not_abandoned() {
    let place = Place::new();
    let mut spec = asks(&format!("{ASK}; read -r who <&4; echo \"hello $who\""));
    spec.abandon_timeout = Some(Duration::from_millis(200));
    let mut job = place.start(&spec).await;
    let (_, number, _) = input(&mut job).await;
    job.set_note("a task").unwrap();
    drop(job);
    // A job without a task that was dropped later is ended.
    abandon(&spec).await;
    let mut job = place.find().await;
    job.respond(number, "Ada").await.unwrap();
    assert_eq!(read(&mut job).await.0, ["hello Ada"]);
}
