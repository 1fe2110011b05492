//! What asks the servers. Every answer is checked byte for byte, only its id may differ.

pub(crate) mod http;
pub(crate) mod stdio;
pub(crate) mod talk;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::messages::{FIRST_ID, Numbered, TEXT};

/// Checks the first answer of a server by what it says; from then on it is compared as bytes.
fn template(answer: &[u8]) -> Result<Numbered> {
    #[derive(Deserialize)]
    struct Answer {
        id: u32,
        result: CallResult,
    }
    #[derive(Deserialize)]
    struct CallResult {
        content: [Content; 1],
    }
    #[derive(Deserialize)]
    struct Content {
        text: String,
    }
    let shown = String::from_utf8_lossy(answer);
    let read: Answer = serde_json::from_slice(answer)
        .with_context(|| format!("not the answer to a call: {shown}"))?;
    let [Content { text }] = read.result.content;
    ensure!(read.id == FIRST_ID && text == TEXT, "not the answer to our call: {shown}");
    Numbered::new(answer).with_context(|| format!("the id was written in another way: {shown}"))
}
