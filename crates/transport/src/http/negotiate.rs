//! Content negotiation: the media type of a request, and the media types that the client accepts.

use http::{HeaderMap, header};

/// Value that nearly all clients send. Matching it avoids parsing.
const USUAL: &str = "application/json, text/event-stream";

/// Kinds of response that a client accepts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Takes {
    pub(super) json: bool,
    pub(super) events: bool,
}

/// Returns whether the media type of the body is JSON.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    headers
        .get(header::CONTENT_TYPE)
        .is_some_and(|value| media(value.as_bytes()).eq_ignore_ascii_case(b"application/json"))
}

/// Parses `Accept`. A client without the header accepts everything.
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
