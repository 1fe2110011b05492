//! A server that is a child process.

use std::sync::{Arc, Mutex};

use outlive::client::{Error, request::result_text, transport::ChildProcess};
use serde_json::json;

use super::kit::builder;

/// Answers the first two requests, then ends.
const SCRIPT: &str = r#"
id() { echo "$1" | sed 's/.*"id":\([0-9]*\),.*/\1/'; }
echo started >&2
read -r line
echo '{"jsonrpc":"2.0","id":'$(id "$line")',"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{}}}'
read -r line
echo '{"jsonrpc":"2.0","id":'$(id "$line")',"result":{"content":[{"type":"text","text":"hello"}]}}'
"#;

// STDIO-01, STDIO-03, STDIO-04, STDIO-13
#[cfg(unix)]
#[tokio::test]
async fn a_process_is_started_spoken_to_and_started_again() {
    let said: Arc<Mutex<Vec<String>>> = Arc::default();
    let noted = Arc::clone(&said);
    let program = ChildProcess::new("sh")
        .args(["-c", SCRIPT])
        .on_stderr(move |line| noted.lock().unwrap().push(line.to_owned()));
    let client = builder().connect(program).await.unwrap();
    assert_eq!(result_text(&client.call_tool("a", json!({})).await.unwrap()), "hello");
    // The process has ended. A call that finds that out before it is sent starts another one; one that
    // was sent to a dying process may have been done.
    for _ in 0..50 {
        match client.call_tool("a", json!({})).await {
            Ok(result) => {
                assert_eq!(result_text(&result), "hello");
                client.close().await;
                let said = said.lock().unwrap();
                assert_eq!(said[0], "started");
                assert!(said.iter().filter(|line| *line == "started").count() >= 2, "{said:?}");
                return;
            }
            Err(Error::Transport(error)) => assert!(error.may_have_been_sent(), "{error}"),
            Err(error) => panic!("{error}"),
        }
    }
    panic!("the program was not started again");
}

#[tokio::test]
async fn a_program_that_is_not_there_is_said_so() {
    let error = builder().connect(ChildProcess::new("/no/such/program")).await.unwrap_err();
    assert!(error.to_string().contains("could not be started"), "{error}");
    assert!(error.to_string().contains("/no/such/program"), "{error}");
    assert!(!error.is_transient());
}
