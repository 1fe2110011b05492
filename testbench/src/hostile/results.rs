//! Large results: the attack that stores and reads them, and a result of the honest caller that the
//! hostile one tries to read.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::caller::Caller;

/// Rows of a report, which has almost the maximum size of a command's output.
const ROWS: u64 = 10_500;
/// Bytes of a row, rounded down.
const ROW_BYTES: u64 = 90;
/// Rows that the attack reads of each report, in every way.
const READS: u64 = 20;
/// A text that only reports of the honest caller contain.
const HONEST_TEXT: &str = "report of honest";
/// Time between two attempts to read the result of the honest caller.
const PROBE_INTERVAL: Duration = Duration::from_millis(200);

/// Stores a report and reads rows of it in every way.
pub(super) fn store_and_read(caller: &Caller, attempt: u64) -> io::Result<()> {
    let message = report(caller, "hostile")?;
    let Some(uri) = stored_uri(&message) else {
        return Err(io::ErrorKind::PermissionDenied.into());
    };
    for read in 0..READS {
        for (method, params) in ways(uri, (attempt + read * 997) % ROWS) {
            caller.without_tasks(method, params)?;
        }
    }
    Ok(())
}

/// A stored result of the honest caller.
pub(super) struct HonestResult {
    uri: String,
}

/// Attempts of another caller to read a result.
#[derive(Debug, Default)]
pub(super) struct Probe {
    /// Number of responses.
    pub(super) responses: u64,
    /// Bytes of the responses that contain the result.
    pub(super) foreign_bytes: u64,
}

impl HonestResult {
    pub(super) fn store(honest: &Caller) -> Result<Self> {
        let message = report(honest, "honest")?;
        let text = message.to_string();
        let uri = stored_uri(&message).with_context(|| format!("not a cut result: {text:.400}"))?;
        Ok(Self { uri: uri.to_owned() })
    }

    /// Reads it as its caller in every way. Returns the responses that do not contain it.
    pub(super) fn failed_reads(&self, honest: &Caller) -> Vec<String> {
        let read = |(method, params)| match honest.without_tasks(method, params) {
            Ok(message) => message.to_string(),
            Err(error) => error.to_string(),
        };
        let responses = ways(&self.uri, ROWS / 2).into_iter().map(read);
        responses.filter(|response| !response.contains(HONEST_TEXT)).collect()
    }

    /// Reads it as another caller until `over` is set.
    pub(super) fn probe(&self, other: &Caller, over: &AtomicBool) -> Probe {
        let mut probe = Probe::default();
        loop {
            for (method, params) in ways(&self.uri, ROWS / 2) {
                if over.load(Ordering::Relaxed) {
                    return probe;
                }
                let Ok(message) = other.without_tasks(method, params) else { continue };
                let text = message.to_string();
                probe.responses += 1;
                if text.contains(HONEST_TEXT) {
                    probe.foreign_bytes += text.len() as u64;
                }
            }
            thread::sleep(PROBE_INTERVAL);
        }
    }
}

/// Calls the tool `report` as a client without tasks.
fn report(caller: &Caller, owner: &str) -> io::Result<Value> {
    let params = json!({"name": "report", "arguments": {"owner": owner}});
    caller.without_tasks("tools/call", params)
}

/// Returns the URI of the structured content of a cut result.
fn stored_uri(message: &Value) -> Option<&str> {
    message["result"]["structuredContent"]["cut"]["uri"].as_str()
}

/// Returns every way to read a result around one of its rows: a method and its parameters.
fn ways(uri: &str, row: u64) -> [(&'static str, Value); 6] {
    let task = uri.split('/').nth(3).unwrap_or_default();
    let read = |query: String| ("resources/read", json!({"uri": format!("{uri}?{query}")}));
    let tool =
        |arguments: Value| ("tools/call", json!({"name": "task_result", "arguments": arguments}));
    [
        read(format!("from={}&bytes={}", row * ROW_BYTES, 1 << 20)),
        read(format!("line={}&lines=1000", row + 2)),
        read(format!("at=/rows/{row}")),
        read(format!("at=/rows&from={row}&bytes=1000")),
        tool(json!({"task": task, "from": row * ROW_BYTES})),
        tool(json!({"task": task, "find": format!("\"row\":{row},")})),
    ]
}

#[cfg(test)]
mod tests {
    use super::{ROWS, ways};

    #[test]
    fn ways_name_task_and_row_of_result() {
        let ways = ways("outlive://results/5f1d/1", ROWS - 1);
        let texts: Vec<String> = ways.iter().map(|(_, params)| params.to_string()).collect();
        assert!(texts.iter().all(|text| text.contains("5f1d")), "{texts:?}");
        assert!(texts[2].contains("outlive://results/5f1d/1?at=/rows/10499"), "{texts:?}");
    }
}
