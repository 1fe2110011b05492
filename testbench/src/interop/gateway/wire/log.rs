//! The file of `wire-tap`.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use super::seen::{Seen, Sender};

/// A file with one line per message: `{"from": "client", "message": …}`.
#[derive(Debug)]
pub(in super::super) struct StdioLog(pub(in super::super) PathBuf);

impl StdioLog {
    /// The messages so far. The file does not exist before the upstream is started.
    pub(in super::super) fn messages(&self) -> Vec<Seen> {
        let text = fs::read_to_string(&self.0).unwrap_or_default();
        text.lines().filter_map(seen).collect()
    }
}

fn seen(line: &str) -> Option<Seen> {
    let mut line: Value = serde_json::from_str(line).ok()?;
    let sender = match line["from"].as_str()? {
        "client" => Sender::Client,
        _ => Sender::Server,
    };
    Some(Seen { sender, message: line["message"].take() })
}
