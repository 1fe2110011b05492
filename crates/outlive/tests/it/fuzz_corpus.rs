//! Replays the fuzzing corpus. `cargo xtask fuzz` searches for new inputs.

use std::{fs, path::Path};

#[path = "../../../../fuzz/targets.rs"]
mod targets;

#[track_caller]
fn replay(corpus: &str, target: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(corpus);
    let inputs: Vec<_> =
        fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(!inputs.is_empty(), "{} is empty", folder.display());
    inputs.iter().for_each(|input| target(&fs::read(input).unwrap()));
}

#[tokio::test]
async fn envelope_corpus_gets_one_line_responses() {
    replay("envelope", targets::envelope);
}

#[test]
fn sse_corpus_yields_same_events_for_any_chunking() {
    replay("sse_reader", targets::sse_reader);
}

#[test]
fn header_corpus_accepts_exactly_matching_names() {
    replay("headers", targets::headers);
}

#[test]
fn relay_corpus_yields_same_messages_for_any_chunking() {
    replay("relay_lines", targets::relay_lines);
}
