//! Writes server-sent events. JSON is on one line, so that an event is one `data` line.
//! Spec: <https://html.spec.whatwg.org/multipage/server-sent-events.html>

use std::{io::Write, time::Duration};

/// A line that clients skip: it keeps proxies from closing a quiet stream.
pub(super) const KEEP_ALIVE: &[u8] = b":\n\n";

/// Writes an event whose data `fill` appends; nothing at all if it says `false`.
pub(super) fn event(out: &mut Vec<u8>, fill: impl FnOnce(&mut Vec<u8>) -> bool) {
    let start = out.len();
    out.extend_from_slice(b"data: ");
    match fill(out) {
        true => out.extend_from_slice(b"\n\n"),
        false => out.truncate(start),
    }
}

/// Writes an event with an id. Without data it only moves the client's position; where there is no
/// id, the client's position stays where it was.
pub(super) fn numbered(out: &mut Vec<u8>, id: Option<String>, data: &[u8]) {
    position(out, id);
    out.extend_from_slice(b"data: ");
    out.extend_from_slice(data);
    out.extend_from_slice(b"\n\n");
}

/// Writes an event without data that tells the client when to come back.
pub(super) fn retry(out: &mut Vec<u8>, id: Option<String>, after: Duration) {
    put(out, format_args!("retry: {}\n", after.as_millis()));
    position(out, id);
    out.extend_from_slice(b"data: \n\n");
}

/// Writes an event with a name.
pub(super) fn named(out: &mut Vec<u8>, name: &str, data: &[u8]) {
    put(out, format_args!("event: {name}\ndata: "));
    out.extend_from_slice(data);
    out.extend_from_slice(b"\n\n");
}

fn position(out: &mut Vec<u8>, id: Option<String>) {
    if let Some(id) = id {
        put(out, format_args!("id: {id}\n"));
    }
}

fn put(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("memory takes everything");
}
