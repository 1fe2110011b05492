//! Large results: the attacks that store and read them, and a result of the honest caller that the
//! hostile one tries to read.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::caller::Caller;

/// Rows of a report, which has almost the maximum size of a command's output.
const ROWS: u64 = 10_500;
/// Bytes of a row, rounded down.
const ROW_BYTES: u64 = 90;
/// One of this many stored results is a report, whose command needs more time than a log.
const REPORT_EVERY: u64 = 8;
/// Stored results that the attack reads. The store evicts older ones.
const READ_RESULTS: usize = 64;
/// Length of the longest text that `find` accepts.
const LONGEST_NEEDLE: usize = 1_024;
/// A text that only reports of the honest caller contain.
const HONEST_TEXT: &str = "report of honest";
/// Time between two attempts to read the result of the honest caller.
const PROBE_INTERVAL: Duration = Duration::from_millis(200);

/// URIs of the results that the attack stored last.
static STORED: Mutex<VecDeque<String>> = Mutex::new(VecDeque::new());

/// Stores a cut result of almost 1 MiB: mostly a log, sometimes a report.
pub(super) fn store_result(caller: &Caller, attempt: u64) -> io::Result<()> {
    let tool = if attempt.is_multiple_of(REPORT_EVERY) { "report" } else { "log" };
    let message = call(caller, tool, "hostile")?;
    let Some(uri) = stored_uri(&message) else { return rejected() };
    let mut stored = STORED.lock().unwrap_or_else(PoisonError::into_inner);
    stored.push_back(uri.to_owned());
    if stored.len() > READ_RESULTS {
        stored.pop_front();
    }
    Ok(())
}

/// Reads a stored result of the attack once, each time in another way.
pub(super) fn read_result(caller: &Caller, attempt: u64) -> io::Result<()> {
    let number = usize::try_from(attempt & u64::from(u32::MAX)).unwrap_or_default();
    let uri = {
        let stored = STORED.lock().unwrap_or_else(PoisonError::into_inner);
        let count = stored.len().max(1);
        stored.get(number % count).cloned()
    };
    let Some(uri) = uri else { return rejected() };
    let row = (number as u64).wrapping_mul(997) % ROWS;
    let mut ways: Vec<_> = ways(&uri, row).into();
    ways.extend(costly_ways(&uri));
    let (method, params) = ways.swap_remove(number % ways.len());
    caller.without_tasks(method, params).map(drop)
}

fn rejected() -> io::Result<()> {
    Err(io::ErrorKind::PermissionDenied.into())
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
        let message = call(honest, "report", "honest")?;
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

/// Calls a tool with a large result, as a client without tasks.
fn call(caller: &Caller, tool: &str, owner: &str) -> io::Result<Value> {
    caller.without_tasks("tools/call", json!({"name": tool, "arguments": {"owner": owner}}))
}

/// Returns the URI of a cut result: of its structured content, or else of its text.
fn stored_uri(message: &Value) -> Option<&str> {
    let result = &message["result"];
    let links = result["content"].as_array().into_iter().flatten();
    let mut links = links.filter(|block| block["type"] == "resource_link");
    let structured = result["structuredContent"]["cut"]["uri"].as_str();
    structured.or_else(|| links.find_map(|link| link["uri"].as_str()))
}

/// A method and its parameters.
type Way = (&'static str, Value);

fn read(uri: &str) -> Way {
    ("resources/read", json!({"uri": uri}))
}

fn task_result(uri: &str, mut arguments: Value) -> Way {
    arguments["task"] = uri.split('/').nth(3).unwrap_or_default().into();
    ("tools/call", json!({"name": "task_result", "arguments": arguments}))
}

/// Returns every way to read a result around one of its rows.
fn ways(uri: &str, row: u64) -> [Way; 7] {
    [
        read(uri),
        read(&format!("{uri}?from={}&bytes={}", row * ROW_BYTES, 1 << 20)),
        read(&format!("{uri}?line={}&lines=1000", row + 2)),
        read(&format!("{uri}?at=/rows/{row}")),
        read(&format!("{uri}?at=/rows&from={row}&bytes=1000")),
        task_result(uri, json!({"from": row * ROW_BYTES})),
        task_result(uri, json!({"find": format!("\"row\":{row},")})),
    ]
}

/// Returns the ways that make the server search a whole result.
fn costly_ways(uri: &str) -> [Way; 3] {
    [
        task_result(uri, json!({"find": "x".repeat(LONGEST_NEEDLE)})),
        task_result(uri, json!({"find": "e"})),
        read(&format!("{uri}?at=/missing")),
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{ROWS, costly_ways, stored_uri, ways};

    #[test]
    fn ways_name_task_and_row_of_result() {
        let uri = "outlive://results/5f1d/1";
        let texts: Vec<String> = ways(uri, ROWS - 1)
            .iter()
            .chain(&costly_ways(uri))
            .map(|(_, params)| params.to_string())
            .collect();
        assert!(texts.iter().all(|text| text.contains("5f1d")), "{texts:?}");
        assert!(texts[3].contains("outlive://results/5f1d/1?at=/rows/10499"), "{texts:?}");
    }

    #[test]
    fn uri_of_cut_result_is_in_structured_content_or_link() {
        let link = json!({"type": "resource_link", "uri": "outlive://results/5f1d/0"});
        let text = json!({"result": {"content": [{"type": "text", "text": "…"}, link]}});
        assert_eq!(stored_uri(&text), Some("outlive://results/5f1d/0"));
        let mut both = text.clone();
        both["result"]["structuredContent"] = json!({"cut": {"uri": "outlive://results/5f1d/1"}});
        assert_eq!(stored_uri(&both), Some("outlive://results/5f1d/1"));
        assert_eq!(stored_uri(&json!({"result": {"content": []}})), None);
    }
}
