//! Content types: what came, and what the client takes.

use http::{HeaderMap, header};

/// What nearly all clients send, so that it need not be taken apart.
const USUAL: &str = "application/json, text/event-stream";

/// Which kinds of answer a client takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Takes {
    pub(super) json: bool,
    pub(super) events: bool,
}

/// Whether the body is JSON, whatever its parameters.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    headers
        .get(header::CONTENT_TYPE)
        .is_some_and(|value| media(value.as_bytes()).eq_ignore_ascii_case(b"application/json"))
}

/// Reads `Accept`. A client that says nothing takes everything.
pub(super) fn takes(headers: &HeaderMap) -> Takes {
    let mut takes = Takes { json: false, events: false };
    let mut any = false;
    for value in headers.get_all(header::ACCEPT) {
        any = true;
        if value == USUAL {
            takes = Takes { json: true, events: true };
            continue;
        }
        for part in value.as_bytes().split(|byte| *byte == b',') {
            let media = media(part);
            let everything = media == b"*/*";
            takes.json |= everything
                || media.eq_ignore_ascii_case(b"application/json")
                || media == b"application/*";
            takes.events |= everything
                || media.eq_ignore_ascii_case(b"text/event-stream")
                || media == b"text/*";
        }
    }
    if any { takes } else { Takes { json: true, events: true } }
}

fn media(part: &[u8]) -> &[u8] {
    let end = memchr::memchr(b';', part).unwrap_or(part.len());
    part[..end].trim_ascii()
}
