//! Standard input, questions and their answers.

use std::time::Duration;

use outlive_cli::job::{How, JobSpec};

use super::{Place, line, read, sh, until};

pub(super) fn asks(script: &str) -> JobSpec {
    let mut spec = sh(script);
    spec.asks = true;
    spec
}

pub(super) const ASK: &str = r#"echo '@outlive {"ask":"who?"}'"#;

#[tokio::test]
async fn a_command_finds_its_input_and_then_the_end_of_it() {
    let mut spec = JobSpec::new(["cat"]);
    spec.stdin = Some("one\ntwo".to_owned());
    let (lines, exit) = Place::new().run(&spec).await;
    assert_eq!(lines, ["one", "two"]);
    assert_eq!(exit.how, How::Code(0));
    // Without any there is nothing to wait for.
    let (lines, _) = Place::new().run(&JobSpec::new(["cat"])).await;
    assert!(lines.is_empty());
}

#[tokio::test]
async fn a_command_that_never_reads_its_input_blocks_nobody() {
    let mut spec = sh("echo begun; exit 3");
    spec.stdin = Some("much ".repeat(1_000_000));
    let (lines, exit) = Place::new().run(&spec).await;
    assert_eq!(lines, ["begun"]);
    assert_eq!(exit.how, How::Code(3));
}

#[tokio::test]
async fn each_answer_is_given_once_and_in_the_order_of_the_questions() {
    let place = Place::new();
    let script = format!("{ASK}; {ASK}; read a; read b; echo $a; echo $b; read c; echo \"end $c\"");
    let mut job = place.start(&asks(&script)).await;
    line(&mut job).await;
    line(&mut job).await;
    assert!(place.jobs.list().unwrap()[0].asking);
    job.answer(2, "second").await.unwrap();
    job.answer(2, "second again").await.unwrap();
    assert!(place.jobs.list().unwrap()[0].asking);
    job.answer(1, "first").await.unwrap();
    job.answer(1, "first again").await.unwrap();
    assert_eq!(line(&mut job).await, "first");
    assert_eq!(line(&mut job).await, "second");
    assert!(!place.jobs.list().unwrap()[0].asking);
    let refused = job.answer(3, "nobody asked").await.unwrap_err().to_string();
    assert!(refused.contains("has not been asked"), "{refused}");
    assert!(job.answer(1, "two\nlines").await.is_err());
    job.end().await.unwrap();
    // It is over; that an answer comes too late is no error.
    job.answer(3, "late").await.unwrap();
}

#[tokio::test]
async fn an_answer_that_nobody_reads_is_no_error() {
    let place = Place::new();
    let mut job = place.start(&asks(&format!("exec <&-; {ASK}; sleep 0.1; echo end"))).await;
    line(&mut job).await;
    job.answer(1, "hello?").await.unwrap();
    let (lines, exit) = read(&mut job).await;
    assert_eq!((lines, exit.how), (vec!["end".to_owned()], How::Code(0)));
}

#[tokio::test]
async fn time_stands_still_while_a_question_is_open() {
    let place = Place::new();
    let mut spec = asks(&format!("{ASK}; read who; echo \"hello $who\"; sleep 1000"));
    spec.time_limit = Some(Duration::from_secs(1));
    let mut job = place.start(&spec).await;
    line(&mut job).await;
    // Twice as long as it may run.
    let waited = tokio::time::timeout(Duration::from_secs(2), job.next()).await;
    assert!(waited.is_err(), "{waited:?}");
    job.answer(1, "Ada").await.unwrap();
    let (lines, exit) = read(&mut job).await;
    assert_eq!(lines, ["hello Ada"]);
    assert_eq!(exit.how, How::TimedOut);
}

#[tokio::test]
async fn what_only_looks_like_a_question_is_none() {
    let place = Place::new();
    let script = r#"echo '@outlive {"tell":"x"}'; echo '@outlive ask'; echo ' @outlive {"ask":"x"}'
        echo '@outlive {"ask":3}'; echo '@outlive {"ask":"x","feilds":{}}'; echo go; read a"#;
    let mut job = place.start(&asks(script)).await;
    while line(&mut job).await != "go" {}
    assert!(!place.jobs.list().unwrap()[0].asking);
    job.end().await.unwrap();
    // One that does not ask may print what it likes.
    let place = Place::new();
    let mut job = place.start(&sh(&format!("{ASK}; sleep 1000"))).await;
    line(&mut job).await;
    assert!(!place.jobs.list().unwrap()[0].asking);
    job.end().await.unwrap();
}

#[tokio::test]
async fn a_question_beyond_the_limits_gets_no_answer_instead_of_waiting_for_one() {
    let place = Place::new();
    let mut spec = asks(&format!("echo one; {ASK}; read a || exit 9"));
    spec.max_output_lines = 1;
    let (lines, exit) = place.run(&spec).await;
    assert_eq!(lines, ["one"]);
    assert_eq!((exit.how, exit.lines_dropped), (How::Code(9), 1));
}

#[tokio::test]
async fn a_second_server_sees_the_question_and_answers_it() {
    let place = Place::new();
    let job = place.start(&asks(&format!("{ASK}; read who; echo \"hello $who\""))).await;
    until(|| place.jobs.list().unwrap()[0].asking).await;
    drop(job);
    let mut job = place.find().await;
    assert!(line(&mut job).await.starts_with("@outlive "));
    job.answer(1, "Grace").await.unwrap();
    assert_eq!(line(&mut job).await, "hello Grace");
}
