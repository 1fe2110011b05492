//! Reads server-sent events, as they come, in pieces of any size.
//!
//! Takes what the standard allows and servers send: line ends of all kinds, a byte order mark,
//! data on several lines, comments, unknown fields. An event without data is reported too, because
//! its id moves the position from which a client resumes.
//! Spec: <https://html.spec.whatwg.org/multipage/server-sent-events.html>

use std::time::Duration;

/// Collects bytes until they are events.
#[derive(Debug)]
pub struct SseReader {
    line: Vec<u8>,
    /// The last byte was CR: an LF right after it belongs to the same line end.
    after_cr: bool,
    at_start: bool,
    event: SseEvent,
    /// Whether the event has any field at all.
    begun: bool,
    size: usize,
    limit: usize,
}

/// One event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SseEvent {
    /// Its type; empty for the usual one.
    pub name: String,
    /// Its data, the lines joined by line feeds. Empty data is no message.
    pub data: String,
    /// Its id, if it has one of its own.
    pub id: Option<String>,
    /// When to come back after the connection is lost, if it says so.
    pub retry: Option<Duration>,
}

/// An event was larger than the limit; the stream cannot be read any further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventTooLarge;

impl SseReader {
    /// Reads events of up to `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self {
            line: Vec::new(),
            after_cr: false,
            at_start: true,
            event: SseEvent::default(),
            begun: false,
            size: 0,
            limit,
        }
    }

    /// Takes what has been read; every event that is complete goes to `each`. What the stream's
    /// end leaves incomplete is no event.
    ///
    /// # Errors
    ///
    /// When an event is larger than the limit.
    pub fn push(
        &mut self,
        bytes: &[u8],
        mut each: impl FnMut(SseEvent),
    ) -> Result<(), EventTooLarge> {
        let mut rest = bytes;
        if std::mem::take(&mut self.after_cr) {
            // An empty push must not forget what the next byte may belong to.
            self.after_cr = rest.is_empty();
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        while let Some(at) = memchr::memchr2(b'\n', b'\r', rest) {
            self.keep(&rest[..at])?;
            self.end_line(&mut each);
            match (rest[at], rest.get(at + 1)) {
                (b'\r', Some(b'\n')) => rest = &rest[at + 2..],
                (b'\r', None) => {
                    self.after_cr = true;
                    rest = &[];
                }
                _ => rest = &rest[at + 1..],
            }
        }
        self.keep(rest)
    }

    fn keep(&mut self, part: &[u8]) -> Result<(), EventTooLarge> {
        self.size += part.len();
        if self.size > self.limit {
            return Err(EventTooLarge);
        }
        self.line.extend_from_slice(part);
        Ok(())
    }

    fn end_line(&mut self, each: &mut impl FnMut(SseEvent)) {
        let line = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&line);
        let line = match std::mem::take(&mut self.at_start) {
            true => line.strip_prefix('\u{feff}').unwrap_or(&line),
            false => &line,
        };
        if line.is_empty() {
            self.size = 0;
            let mut event = std::mem::take(&mut self.event);
            if std::mem::take(&mut self.begun) {
                // Every data line ends with a line feed; the last one is not part of the data.
                event.data.pop();
                each(event);
            }
            return;
        }
        let (field, value) = match line.split_once(':') {
            Some((field, value)) => (field, value.strip_prefix(' ').unwrap_or(value)),
            None => (line, ""),
        };
        self.field(field, value);
    }

    fn field(&mut self, field: &str, value: &str) {
        match field {
            "data" => {
                self.event.data.push_str(value);
                self.event.data.push('\n');
            }
            "event" => self.event.name = value.to_owned(),
            "id" if !value.contains('\0') => self.event.id = Some(value.to_owned()),
            "retry" if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) => {
                self.event.retry = value.parse().ok().map(Duration::from_millis);
            }
            // Comments have no name before their colon; unknown fields are skipped as well.
            _ => return,
        }
        self.begun = true;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{EventTooLarge, SseEvent, SseReader};

    fn read(stream: &[u8], piece: usize) -> Vec<SseEvent> {
        let mut reader = SseReader::new(1 << 10);
        let mut events = Vec::new();
        for part in stream.chunks(piece) {
            reader.push(part, |event| events.push(event)).unwrap();
        }
        events
    }

    #[track_caller]
    fn check(stream: &str, expected: &[SseEvent]) {
        for piece in 1..=stream.len() {
            assert_eq!(read(stream.as_bytes(), piece), expected, "in pieces of {piece}");
        }
    }

    fn data(data: &str) -> SseEvent {
        SseEvent { data: data.into(), ..SseEvent::default() }
    }

    #[test]
    fn line_ends_of_all_kinds_are_the_same() {
        check("data: a\n\ndata: b\r\n\r\ndata: c\r\rdata: d\n\n", &["a", "b", "c", "d"].map(data));
    }

    #[test]
    fn comments_unknown_fields_and_the_byte_order_mark_are_skipped() {
        check("\u{feff}data: a\n\n:\n\n: keep-alive\nfoo: bar\ndata:b\n\n", &["a", "b"].map(data));
    }

    #[test]
    fn data_on_several_lines_is_joined_and_only_one_space_is_taken() {
        check("data: a\ndata:  b\ndata\n\n", &[data("a\n b\n")]);
    }

    #[test]
    fn an_event_without_data_still_moves_the_position() {
        let expected = SseEvent {
            id: Some("1-0".into()),
            retry: Some(Duration::from_millis(1500)),
            ..data("")
        };
        check("retry: 1500\nid: 1-0\ndata: \n\n", &[expected]);
        check("retry: soon\nid: 1\0\n\n", &[]);
    }

    #[test]
    fn an_event_that_was_not_finished_is_none() {
        check("data: a\n\ndata: b\n", &["a"].map(data));
    }

    #[test]
    fn an_event_over_the_limit_ends_the_reading() {
        let mut reader = SseReader::new(10);
        assert_eq!(reader.push(b"data: 12345678", |_| ()), Err(EventTooLarge));
    }
}
