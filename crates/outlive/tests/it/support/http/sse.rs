//! Incremental parser of server-sent events.
//! Spec: <https://html.spec.whatwg.org/multipage/server-sent-events.html>

/// One event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) name: Option<String>,
    pub(crate) id: Option<String>,
    pub(crate) retry: Option<u64>,
    pub(crate) data: String,
}

/// A part of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Event(Event),
    /// A comment, which serves as keep-alive.
    Comment,
}

/// Bytes that are not yet a complete event.
#[derive(Debug, Default)]
pub(super) struct Parser(Vec<u8>);

impl Parser {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// Returns the next event or comment if it is complete.
    pub(super) fn next(&mut self) -> Option<Piece> {
        let end = self.0.windows(2).position(|pair| pair == b"\n\n")?;
        let block: Vec<u8> = self.0.drain(..end + 2).collect();
        let block = String::from_utf8(block).expect("streams of events are UTF-8");
        let mut event = Event::default();
        let mut fields = 0;
        for line in block.lines().filter(|line| !line.is_empty()) {
            let (field, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            fields += usize::from(!field.is_empty());
            match field {
                "" => {}
                "event" => event.name = Some(value.into()),
                "id" => event.id = Some(value.into()),
                "retry" => event.retry = Some(value.parse().expect("`retry` is a number")),
                "data" => {
                    assert!(event.data.is_empty(), "our events have one line of data: {block}");
                    event.data = value.into();
                }
                unknown => panic!("a field `{unknown}` in {block}"),
            }
        }
        Some(if fields == 0 { Piece::Comment } else { Piece::Event(event) })
    }

    /// Whether no incomplete event is left.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
