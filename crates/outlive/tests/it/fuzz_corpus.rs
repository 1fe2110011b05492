//! The inputs that fuzzing started from or found, replayed. `cargo xtask fuzz` looks for more.

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
async fn messages_are_answered_or_refused_on_one_line_of_json() {
    replay("envelope", targets::envelope);
}

#[test]
fn events_are_the_same_however_the_stream_is_cut() {
    replay("sse_reader", targets::sse_reader);
}

#[test]
fn a_header_is_let_through_exactly_if_it_stands_for_the_name() {
    replay("headers", targets::headers);
}
