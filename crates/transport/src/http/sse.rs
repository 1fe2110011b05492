//! Writer for server-sent events. JSON contains no line breaks, so an event has one `data` line.
//! Spec: <https://html.spec.whatwg.org/multipage/server-sent-events.html>

use std::{io::Write, time::Duration};

/// Comment that clients skip. It keeps proxies from closing an idle stream.
pub(super) const KEEP_ALIVE: &[u8] = b":\n\n";

/// Writes an event with the data that `fill` appends. Writes nothing if `fill` returns `false`.
pub(super) fn event(out: &mut Vec<u8>, fill: impl FnOnce(&mut Vec<u8>) -> bool) {
    let start = out.len();
    out.extend_from_slice(b"data: ");
    match fill(out) {
        true => out.extend_from_slice(b"\n\n"),
        false => out.truncate(start),
    }
}

/// Writes an event with an ID. An event without data only moves the client's resume position.
/// Without an ID, the position does not change.
pub(super) fn numbered(out: &mut Vec<u8>, id: Option<String>, data: &[u8]) {
    position(out, id);
    out.extend_from_slice(b"data: ");
    out.extend_from_slice(data);
    out.extend_from_slice(b"\n\n");
}

/// Writes an event without data that sets the client's reconnection time.
pub(super) fn retry(out: &mut Vec<u8>, id: Option<String>, after: Duration) {
    put(out, format_args!("retry: {}\n", after.as_millis()));
    position(out, id);
    out.extend_from_slice(b"data: \n\n");
}

/// Writes an event with a type.
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
    out.write_fmt(text).expect("writing to a Vec does not fail");
}
