//! A gateway in a separate process, which a test kills.

use std::{
    env,
    io::{BufRead, BufReader, Lines},
    process::{Child, ChildStderr, Command, Stdio},
};

use serde_json::json;

use super::support::Place;

/// Variable with the data folder of such a process.
const ROLE: &str = "OUTLIVE_TEST_PIPE";

/// Variable with its instruction.
const INSTRUCTION: &str = "OUTLIVE_TEST_INSTRUCTION";

/// A gateway in a separate process.
pub(crate) struct Gateway {
    process: Child,
    said: Lines<BufReader<ChildStderr>>,
}

impl Gateway {
    /// Starts a gateway, and waits until it has done what `instruction` says.
    pub(crate) fn start(place: &Place, instruction: &str) -> Self {
        let mut process = Command::new(env::current_exe().unwrap())
            .args(["--exact", "pipes::gateway::gateway_in_separate_process", "--nocapture"])
            .env(ROLE, &place.data)
            .env(INSTRUCTION, instruction)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(process.stderr.take().unwrap()).lines();
        assert!(said.any(|line| line.unwrap() == "done"), "the gateway ended: {instruction}");
        Self { process, said }
    }

    /// Kills the gateway with SIGKILL.
    pub(crate) fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.process);
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Waits until the gateway reports a line.
    pub(crate) fn wait_for(&mut self, expected: &str) {
        assert!(self.said.any(|line| line.unwrap() == expected), "no `{expected}`");
    }
}

fn say(text: &str) {
    eprintln!("{text}");
}

/// Not a test by itself: without the variable, it passes at once.
#[tokio::test]
async fn gateway_in_separate_process() {
    let (Some(data), Ok(instruction)) = (env::var_os(ROLE), env::var(INSTRUCTION)) else { return };
    let place = Place::at(data.into());
    let mut gateway = match place.pipes.list().unwrap().is_empty() {
        true => place.start().await,
        false => place.find().await,
    };
    match instruction.as_str() {
        "retained" => gateway.request_retained(1, "slow", json!({})).await,
        "plain" => gateway.request(1, "slow", json!({})).await,
        "asked" => {
            gateway.request_retained(1, "ask", json!({})).await;
            while gateway.message().await["method"] != "ask" {}
            gateway.sender.carry(1, "\"form\"", 5);
        }
        "idle" => {
            gateway.request(1, "echo", json!({})).await;
            gateway.response(1).await;
        }
        other => panic!("unknown instruction {other}"),
    }
    if instruction != "asked" && instruction != "idle" {
        place.wait_for("executions", "1").await;
    }
    say("done");
    // Until it is killed. A gateway that was stopped and continues tries to use its request.
    loop {
        if place.data.join("use").exists() {
            gateway.sender.done(1);
            gateway.sender.cancel(1, r#"{"method":"cancelled by the old gateway"}"#.into());
            gateway.sender.respond(r#"{"id":"form","result":"of the old gateway"}"#.into()).await;
            say("used");
            return std::future::pending().await;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}
