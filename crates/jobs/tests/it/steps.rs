//! Tests of the steps of a command.

use outlive_jobs::{Event, How, Job, JobSpec, StepLine};
use serde_json::json;

use crate::support::{Place, read, sh};

fn steps(script: &str) -> JobSpec {
    let mut spec = sh(script);
    spec.steps = true;
    spec
}

/// The function of docs/outlive-toml.md, and a script with two steps.
const SCRIPT: &str = r#"
step() { echo "{\"step\":\"$1\"}" >&3; read -r reply <&4; [ "$reply" = "{\"go\":\"$1\"}" ]; }
step build && { echo building; echo '{"done":"build","value":"shop:1"}' >&3; read -r reply <&4; }
step push && { echo pushing; echo '{"done":"push"}' >&3; read -r reply <&4; }
echo "end $reply"
"#;

/// Returns the next step, and the lines before it.
async fn step(job: &mut Job) -> (Vec<String>, u32, StepLine) {
    let mut lines = Vec::new();
    loop {
        match job.next().await.unwrap() {
            Event::Line(line) => lines.push(String::from_utf8(line.bytes).unwrap()),
            Event::Step { number, request } => return (lines, number, request),
            Event::Exit(exit) => panic!("no further step: {exit:?}"),
            _ => {}
        }
    }
}

fn start(key: &str) -> StepLine {
    StepLine::Start { key: key.to_owned() }
}

#[tokio::test]
async fn steps_are_reported_in_the_order_of_the_output() {
    let place = Place::new();
    let mut job = place.start(&steps(SCRIPT)).await;
    assert_eq!(step(&mut job).await, (vec![], 1, start("build")));
    job.respond(1, r#"{"go":"build"}"#).await.unwrap();
    let done = StepLine::Done { key: "build".to_owned(), value: json!("shop:1") };
    assert_eq!(step(&mut job).await, (vec!["building".to_owned()], 2, done));
    job.respond(2, r#"{"recorded":"build"}"#).await.unwrap();
    assert_eq!(step(&mut job).await, (vec![], 3, start("push")));
    // A recorded step does not execute.
    job.respond(3, r#"{"recorded":"push","value":null}"#).await.unwrap();
    let (lines, exit) = read(&mut job).await;
    assert_eq!(lines, [r#"end {"recorded":"push","value":null}"#]);
    assert_eq!(exit.how, How::Code(0));
    // A later reader gets the same steps.
    let mut job = place.find().await;
    let numbers = [step(&mut job).await.1, step(&mut job).await.1, step(&mut job).await.1];
    assert_eq!(numbers, [1, 2, 3]);
}

#[tokio::test]
async fn step_of_a_tool_without_steps_is_rejected() {
    let script = r#"echo '{"step":"build"}' >&3; read -r reply <&4; echo "$reply""#;
    let (lines, _) = Place::new().run(&sh(script)).await;
    assert!(lines[0].contains(r#""rejected":"build","kind":"no_steps""#), "{lines:?}");
    assert!(lines[0].contains("steps = true"), "{lines:?}");
}
