//! Servers that are child processes.

use std::sync::{Arc, Mutex};

use outlive::client::{Error, request::result_text, transport::ChildProcess};
use serde_json::json;

use super::kit::builder;

/// Responds to the first two requests, then exits.
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
async fn child_process_that_exits_is_restarted() {
    let said: Arc<Mutex<Vec<String>>> = Arc::default();
    let noted = Arc::clone(&said);
    let program = ChildProcess::new("sh")
        .args(["-c", SCRIPT])
        .on_stderr(move |line| noted.lock().unwrap().push(line.to_owned()));
    let client = builder().connect(program).await.unwrap();
    assert_eq!(result_text(&client.call_tool("a", json!({})).await.unwrap()), "hello");
    // The process has exited. If the client notices before sending, it restarts the process. If it
    // notices after sending, the call may have executed.
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
    panic!("the program was not restarted");
}

#[tokio::test]
async fn missing_program_fails_with_its_path() {
    let error = builder().connect(ChildProcess::new("/no/such/program")).await.unwrap_err();
    assert!(error.to_string().contains("could not be started"), "{error}");
    assert!(error.to_string().contains("/no/such/program"), "{error}");
    assert!(!error.is_transient());
}
