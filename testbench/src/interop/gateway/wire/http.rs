//! Reads the JSON messages in one direction of an HTTP/1.1 connection, as its bytes arrive.

use serde_json::Value;

/// A reader of requests or responses.
#[derive(Debug, Default)]
pub(super) struct HttpReader {
    /// Bytes that are not read yet.
    bytes: Vec<u8>,
    state: State,
    is_stream: bool,
    body: Vec<u8>,
    /// Data of the event that is being read.
    event: String,
}

#[derive(Clone, Copy, Debug, Default)]
enum State {
    #[default]
    Head,
    /// A body with this many further bytes.
    Sized(usize),
    ChunkSize,
    /// A chunk with this many further bytes.
    Chunk(usize),
    Trailer,
    /// A body until the end of the connection.
    UntilEnd,
}

impl HttpReader {
    /// Reads further bytes and returns the messages that are complete.
    pub(super) fn read(&mut self, bytes: &[u8]) -> Vec<Value> {
        self.bytes.extend_from_slice(bytes);
        let mut found = Vec::new();
        while self.step(&mut found) {}
        found
    }

    /// Returns whether there may be more to read.
    fn step(&mut self, found: &mut Vec<Value>) -> bool {
        match self.state {
            State::Head => {
                let Some(head) = self.take_until(b"\r\n\r\n") else { return false };
                self.open(&head.to_ascii_lowercase());
            }
            State::Sized(0) => self.close(found),
            State::Sized(left) => {
                let Some(taken) = self.take_part(left, found) else { return false };
                self.state = State::Sized(left - taken);
            }
            State::ChunkSize => {
                let Some(line) = self.take_until(b"\r\n") else { return false };
                let size = line.split(';').next().unwrap_or_default().trim();
                let size = usize::from_str_radix(size, 16).unwrap_or(0);
                self.state = if size == 0 { State::Trailer } else { State::Chunk(size) };
            }
            State::Chunk(0) => {
                if self.take_until(b"\r\n").is_none() {
                    return false;
                }
                self.state = State::ChunkSize;
            }
            State::Chunk(left) => {
                let Some(taken) = self.take_part(left, found) else { return false };
                self.state = State::Chunk(left - taken);
            }
            State::Trailer => {
                let Some(line) = self.take_until(b"\r\n") else { return false };
                if line.is_empty() {
                    self.close(found);
                }
            }
            State::UntilEnd => return self.take_part(usize::MAX, found).is_some(),
        }
        true
    }

    /// Removes the text before a separator, and the separator.
    fn take_until(&mut self, separator: &[u8]) -> Option<String> {
        let mut windows = self.bytes.windows(separator.len());
        let end = windows.position(|window| window == separator)?;
        let text = String::from_utf8_lossy(&self.bytes[..end]).into_owned();
        self.bytes.drain(..end + separator.len());
        Some(text)
    }

    /// Reads up to `most` bytes of a body. Returns their number, or `None` at the end of the buffer.
    fn take_part(&mut self, most: usize, found: &mut Vec<Value>) -> Option<usize> {
        let size = most.min(self.bytes.len());
        if size == 0 {
            return None;
        }
        self.body.extend(self.bytes.drain(..size));
        if self.is_stream {
            self.read_events(found);
        }
        Some(size)
    }

    /// Reads the head of a request or response, in lower case.
    fn open(&mut self, head: &str) {
        let mut lines = head.split("\r\n");
        let start = lines.next().unwrap_or_default();
        let header = |name: &str| {
            let mut headers = head.split("\r\n").filter_map(|line| line.split_once(':'));
            headers.find(|(found, _)| *found == name).map(|(_, value)| value.trim())
        };
        self.is_stream = header("content-type").is_some_and(|it| it.contains("text/event-stream"));
        let is_response = start.starts_with("http/");
        let status = start.split(' ').nth(1).unwrap_or_default();
        let length = header("content-length").and_then(|it| it.parse().ok());
        let is_chunked = header("transfer-encoding").is_some_and(|it| it.contains("chunked"));
        let is_empty = is_response && (status.starts_with('1') || ["204", "304"].contains(&status));
        self.state = match (is_empty, is_chunked, length) {
            (true, ..) => State::Sized(0),
            (false, true, _) => State::ChunkSize,
            (false, false, Some(length)) => State::Sized(length),
            (false, false, None) if is_response => State::UntilEnd,
            (false, false, None) => State::Sized(0),
        };
    }

    /// Ends a body.
    fn close(&mut self, found: &mut Vec<Value>) {
        self.state = State::Head;
        let body = std::mem::take(&mut self.body);
        self.event.clear();
        if !self.is_stream {
            found.extend(messages(&body));
        }
    }

    /// Reads the complete lines of an event stream.
    fn read_events(&mut self, found: &mut Vec<Value>) {
        while let Some(end) = self.body.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.body.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line);
            let line = line.trim_end_matches(['\r', '\n']);
            if let Some(data) = line.strip_prefix("data:") {
                self.event.push_str(data.trim_start());
            } else if line.is_empty() {
                found.extend(messages(self.event.as_bytes()));
                self.event.clear();
            }
        }
    }
}

/// Parses a message, or a batch of messages.
fn messages(text: &[u8]) -> Vec<Value> {
    match serde_json::from_slice(text) {
        Ok(Value::Array(messages)) => messages,
        Ok(message @ Value::Object(_)) => vec![message],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::HttpReader;

    /// Reads the text at once, and byte by byte.
    #[track_caller]
    fn check(text: &str, expected: &[i64]) {
        let ids = |found: Vec<serde_json::Value>| {
            found.iter().filter_map(|message| message["id"].as_i64()).collect::<Vec<_>>()
        };
        assert_eq!(ids(HttpReader::default().read(text.as_bytes())), expected);
        let mut reader = HttpReader::default();
        let found = text.bytes().flat_map(|byte| reader.read(&[byte])).collect();
        assert_eq!(ids(found), expected);
    }

    #[test]
    fn bodies_of_requests_on_one_connection_are_read() {
        check(
            "POST /mcp HTTP/1.1\r\nContent-Length: 8\r\n\r\n{\"id\":1}GET /mcp HTTP/1.1\r\nHost: x\r\n\r\n\
             POST /mcp HTTP/1.1\r\ncontent-length: 19\r\n\r\n[{\"id\":2},{\"id\":3}]",
            &[1, 2, 3],
        );
    }

    #[test]
    fn chunked_body_is_joined() {
        check(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=1\r\n{\"i\r\n5\r\nd\":4}\r\n0\r\n\r\n\
             HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n",
            &[4],
        );
    }

    #[test]
    fn events_of_open_stream_are_read_as_they_arrive() {
        check(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\nid: 1\nevent: message\ndata: {\"id\":5}\n\n\
             data: /messages?x\n\n: ping\n\ndata: {\ndata: \"id\":6}\r\n\r\n",
            &[5, 6],
        );
        check(
            "HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\n{\"id\":7}",
            &[7],
        );
    }

    #[test]
    fn body_that_is_not_json_has_no_message() {
        let mut reader = HttpReader::default();
        let found = reader.read(b"HTTP/1.1 404 Not Found\r\ncontent-length: 4\r\n\r\nnone");
        assert_eq!(found, Vec::<serde_json::Value>::new());
        let found = reader.read(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}");
        assert_eq!(found, [json!({})]);
    }
}
