//! Incremental parser for server-sent events.
//!
//! Accepts chunks of any size, all kinds of line breaks, a byte order mark, multi-line data,
//! comments and unknown fields. An event without data is reported too, because its ID moves the
//! client's resume position.
//! Spec: <https://html.spec.whatwg.org/multipage/server-sent-events.html>

use std::time::Duration;

/// Buffers bytes until an event is complete.
#[derive(Debug)]
pub struct SseReader {
    line: Vec<u8>,
    /// Whether the last byte was CR. A following LF belongs to the same line break.
    after_cr: bool,
    at_start: bool,
    event: SseEvent,
    /// Whether the current event has a field.
    has_field: bool,
    size: usize,
    limit: usize,
}

/// One event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SseEvent {
    /// Event type. Empty for the default type.
    pub name: String,
    /// Data, with lines joined by line feeds. Empty data is not a message.
    pub data: String,
    /// Event ID.
    pub id: Option<String>,
    /// Time to wait before reconnecting.
    pub retry: Option<Duration>,
}

/// An event exceeded the limit. The stream cannot be parsed further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventTooLarge;

impl SseReader {
    /// Creates a parser for events of up to `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self {
            line: Vec::new(),
            after_cr: false,
            at_start: true,
            event: SseEvent::default(),
            has_field: false,
            size: 0,
            limit,
        }
    }

    /// Parses received bytes and passes each complete event to `each`. An incomplete event at the
    /// end of the stream is discarded.
    ///
    /// # Errors
    ///
    /// Returns an error if an event exceeds the limit.
    pub fn push(
        &mut self,
        bytes: &[u8],
        mut each: impl FnMut(SseEvent),
    ) -> Result<(), EventTooLarge> {
        let mut rest = bytes;
        if std::mem::take(&mut self.after_cr) {
            // An empty chunk must not reset the flag.
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
            if std::mem::take(&mut self.has_field) {
                // Every data line appends a line feed. The last one is not part of the data.
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
            // A comment has an empty field name. Unknown fields are skipped too.
            _ => return,
        }
        self.has_field = true;
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
    fn events_with_any_line_break_are_parsed() {
        check("data: a\n\ndata: b\r\n\r\ndata: c\r\rdata: d\n\n", &["a", "b", "c", "d"].map(data));
    }

    #[test]
    fn comments_unknown_fields_and_the_byte_order_mark_are_skipped() {
        check("\u{feff}data: a\n\n:\n\n: keep-alive\nfoo: bar\ndata:b\n\n", &["a", "b"].map(data));
    }

    #[test]
    fn multi_line_data_is_joined_and_one_leading_space_is_removed() {
        check("data: a\ndata:  b\ndata\n\n", &[data("a\n b\n")]);
    }

    #[test]
    fn event_without_data_is_reported_with_its_id() {
        let expected = SseEvent {
            id: Some("1-0".into()),
            retry: Some(Duration::from_millis(1500)),
            ..data("")
        };
        check("retry: 1500\nid: 1-0\ndata: \n\n", &[expected]);
        check("retry: soon\nid: 1\0\n\n", &[]);
    }

    #[test]
    fn incomplete_event_is_not_reported() {
        check("data: a\n\ndata: b\n", &["a"].map(data));
    }

    #[test]
    fn event_over_the_limit_returns_an_error() {
        let mut reader = SseReader::new(10);
        assert_eq!(reader.push(b"data: 12345678", |_| ()), Err(EventTooLarge));
    }
}
