//! A line that exceeds the limit of a message. Its bytes are not stored, but they tell which request
//! the line responds to.

use std::fmt;

/// Bytes of a member name or of an ID that are compared.
const MAX_TEXT: usize = 24;

/// A line that is skipped.
#[derive(Debug, Default)]
pub(super) struct LongLine {
    /// Number of bytes so far.
    pub(super) bytes: usize,
    depth: usize,
    place: Place,
    /// Name of the current member of the message.
    name: Vec<u8>,
    /// Text of the current value, if the member is the ID.
    value: Option<Vec<u8>>,
    id: Option<u64>,
    has_method: bool,
}

/// Position within the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Between,
    /// Where the name of a member of the message starts.
    BeforeName,
    Name {
        is_escaped: bool,
    },
    Text {
        is_escaped: bool,
    },
}

impl LongLine {
    /// Adds bytes of the line.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes = self.bytes.saturating_add(bytes.len());
        bytes.iter().for_each(|byte| self.read(*byte));
    }

    /// Returns the ID of the request that the line responds to.
    pub(super) fn answers(&self) -> Option<u64> {
        self.id.filter(|_| !self.has_method)
    }

    /// Returns whether the line is a request or a notification.
    pub(super) fn has_method(&self) -> bool {
        self.has_method
    }

    fn read(&mut self, byte: u8) {
        self.place = match (self.place, byte) {
            (Place::Name { is_escaped: false }, b'"') => Place::Between,
            (Place::Name { is_escaped }, byte) => {
                push(&mut self.name, byte);
                Place::Name { is_escaped: !is_escaped && byte == b'\\' }
            }
            (Place::Text { is_escaped: false }, b'"') => Place::Between,
            (Place::Text { is_escaped }, byte) => {
                Place::Text { is_escaped: !is_escaped && byte == b'\\' }
            }
            (Place::BeforeName, b'"') => {
                self.name.clear();
                Place::Name { is_escaped: false }
            }
            (_, b'"') => {
                // The IDs of this client are numbers.
                self.value = None;
                Place::Text { is_escaped: false }
            }
            (place, byte) => self.read_structure(place, byte),
        };
    }

    fn read_structure(&mut self, place: Place, byte: u8) -> Place {
        match byte {
            b'{' | b'[' => {
                self.depth += 1;
                match self.depth == 1 && byte == b'{' {
                    true => Place::BeforeName,
                    false => Place::Between,
                }
            }
            b'}' | b']' => {
                self.end_value();
                self.depth = self.depth.saturating_sub(1);
                Place::Between
            }
            b',' if self.depth == 1 => {
                self.end_value();
                Place::BeforeName
            }
            b':' if self.depth == 1 => {
                self.has_method |= self.name == b"method";
                self.value = (self.name == b"id").then(Vec::new);
                Place::Between
            }
            byte => {
                if let Some(value) = self.value.as_mut().filter(|_| !byte.is_ascii_whitespace()) {
                    push(value, byte);
                }
                place
            }
        }
    }

    fn end_value(&mut self) {
        if self.depth == 1
            && let Some(value) = self.value.take()
        {
            self.id = std::str::from_utf8(&value).ok().and_then(|value| value.parse().ok());
        }
    }
}

impl fmt::Display for LongLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a line has {} bytes, which exceeds `message_bytes`", self.bytes)
    }
}

impl std::error::Error for LongLine {}

fn push(text: &mut Vec<u8>, byte: u8) {
    if text.len() < MAX_TEXT {
        text.push(byte);
    }
}

#[cfg(test)]
mod tests {
    use super::LongLine;

    /// Reads a line in parts of three bytes.
    fn read(line: &str) -> LongLine {
        let mut long = LongLine::default();
        line.as_bytes().chunks(3).for_each(|part| long.push(part));
        assert_eq!(long.bytes, line.len());
        long
    }

    #[test]
    fn response_names_its_request_wherever_the_id_stands() {
        for line in [
            r#"{"jsonrpc":"2.0","id":70,"result":{"id":1,"text":"\"id\":2,"}}"#,
            r#"{"result":{"content":[{"id":1,"a":"}"}]},"jsonrpc":"2.0", "id" : 70 }"#,
            r#"{"error":{"code":1,"message":"\\"},"id":70}"#,
        ] {
            assert_eq!(read(line).answers(), Some(70), "{line}");
        }
    }

    #[test]
    fn other_messages_answer_nothing() {
        for line in [
            r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":{}}"#,
            r#"{"method":"notifications/message","params":{"id":7}}"#,
            r#"{"id":"7","result":{}}"#,
            r#"{"id":99999999999999999999999999999999,"result":{}}"#,
            r#"[{"id":7,"result":{}}]"#,
            "xxxxx \"id\":7, {",
        ] {
            assert_eq!(read(line).answers(), None, "{line}");
        }
        assert!(read(r#"{"id":7,"method":"x"}"#).has_method());
    }
}
