//! A server that is unreachable while a task runs: the program reports it, and continues when the
//! server is back.

use std::{fs, net::TcpListener, process::Child};

use super::{Place, until};
use crate::call::stage::{ERAS, Outlive};

const SLOW: &str = r#"
[tools.slow]
description = "Runs until it may end."
shell = true
task = "TASK"
command = 'echo begun; touch "$arg_until.begun"; while [ ! -e "$arg_until" ]; do sleep 0.02; done; echo ended'
[tools.slow.arguments]
until = { type = "string" }
"#;

/// A running program, with its output in files.
struct Waiting {
    process: Child,
    out: String,
    err: String,
}

impl Waiting {
    fn start(outlive: &Outlive, name: &str, arguments: &[&str]) -> Self {
        let (out, err) = (outlive.folder.file(name), outlive.folder.file(&format!("{name}.err")));
        let mut command = outlive.command(arguments);
        command.stdout(fs::File::create(&out).unwrap()).stderr(fs::File::create(&err).unwrap());
        Self { process: command.spawn().unwrap(), out, err }
    }

    /// Waits until standard error contains `words`.
    async fn says(&self, words: &str) {
        Self::has(&self.err, words).await;
    }

    /// Waits until standard output contains `words`.
    async fn prints(&self, words: &str) {
        Self::has(&self.out, words).await;
    }

    async fn has(file: &str, words: &str) {
        until(&format!("{file} has `{words}`"), || {
            fs::read_to_string(file).unwrap().contains(words).then_some(())
        })
        .await;
    }

    fn end(mut self) -> (Option<i32>, String) {
        let ended = self.process.wait().unwrap();
        (ended.code(), fs::read_to_string(&self.out).unwrap())
    }
}

#[tokio::test]
async fn outage_and_return_of_server_are_reported() {
    for era in ERAS {
        let (outlive, mut place) = (Outlive::new(), Place::new(&SLOW.replace("TASK", "always")));
        let hold = format!("until={}", outlive.folder.file("hold"));
        let url = place.url().to_owned();
        let call = Waiting::start(
            &outlive,
            "call",
            &["call", "--protocol-version", era, &url, "slow", &hold],
        );
        let handle = outlive.until_task();
        let watch = Waiting::start(&outlive, "watch", &["tasks", "watch", &handle]);
        // Each program must have contacted the server first. In the legacy era, output is printed
        // only at the end.
        watch.prints("working").await;
        let result = match era == ERAS[0] {
            true => Some(Waiting::start(
                &outlive,
                "result",
                &["tasks", "result", "--keep-handle", &handle],
            )),
            false => None,
        };
        if let Some(result) = &result {
            result.prints("begun").await;
        }
        place.kill();
        for waiting in [&call, &watch].into_iter().chain(&result) {
            waiting.says("does not respond: ").await;
            waiting.says("; retrying until it responds\n").await;
        }
        let back = format!("to return to the task later: outlive tasks result {}", &handle[..8]);
        for waiting in [&call].into_iter().chain(&result) {
            waiting.says(&back).await;
        }
        watch.says("to return later: outlive tasks watch").await;
        place.start();
        for waiting in [&call, &watch].into_iter().chain(&result) {
            waiting.says("responds again").await;
        }
        outlive.folder.touch("hold");
        for waiting in [call].into_iter().chain(result) {
            assert_eq!(waiting.end(), (Some(0), "begun\nended\n".to_owned()), "{era}");
        }
        let (code, lines) = watch.end();
        assert!(code == Some(0) && lines.contains("completed"), "{lines}");
    }
}

#[tokio::test]
async fn call_of_lost_server_keeps_its_handle() {
    let (outlive, mut place) = (Outlive::new(), Place::new(&SLOW.replace("TASK", "never")));
    let hold = outlive.folder.file("hold");
    let url = place.url().to_owned();
    let until_hold = format!("until={hold}");
    let mut call = Waiting::start(&outlive, "call", &["call", &url, "slow", &until_hold]);
    let begun = outlive.folder.file("hold.begun");
    until("the command runs", || fs::exists(&begun).unwrap().then_some(())).await;
    place.kill();
    // Takes the place of the server and closes each connection, so that the test sees each retry.
    let address = url.trim_start_matches("http://").trim_end_matches("/mcp");
    let listener = TcpListener::bind(address).unwrap();
    listener.set_nonblocking(true).unwrap();
    for retry in ["first", "second"] {
        until(&format!("the {retry} retry"), || listener.accept().ok()).await;
    }
    assert_eq!(outlive.written().len(), 1, "the call may have been executed");
    call.process.kill().unwrap();
    call.process.wait().unwrap();
}
