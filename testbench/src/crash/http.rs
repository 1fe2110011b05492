//! A minimal HTTP/1.1 client: one request per connection, JSON or event stream as response.

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// A response after its head.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    head: Vec<(String, String)>,
    body: BufReader<Body>,
}

/// Why a request got no response.
#[derive(Debug)]
pub(crate) enum NoAnswer {
    /// Connection refused: the request was not executed.
    Refused,
    /// The request may or may not have been executed, or may still be.
    Unknown(io::Error),
}

impl std::fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Refused => f.write_str("connection refused"),
            Self::Unknown(error) => write!(f, "the connection was lost: {error}"),
        }
    }
}

/// Sends a message. `patience` is the timeout of each network operation.
pub(crate) fn post(
    address: SocketAddr,
    headers: &[(&str, &str)],
    message: &Value,
    patience: Duration,
) -> Result<Response, NoAnswer> {
    let stream =
        TcpStream::connect_timeout(&address, patience).map_err(|error| match error.kind() {
            ErrorKind::ConnectionRefused => NoAnswer::Refused,
            _ => NoAnswer::Unknown(error),
        })?;
    exchange(stream, headers, message, patience).map_err(NoAnswer::Unknown)
}

pub(crate) fn exchange(
    mut stream: TcpStream,
    headers: &[(&str, &str)],
    message: &Value,
    patience: Duration,
) -> io::Result<Response> {
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    send(&mut stream, headers, message)?;
    Response::read(BufReader::new(stream))
}

/// Writes a request. The response is the only one of the connection.
pub(crate) fn send(
    stream: &mut TcpStream,
    headers: &[(&str, &str)],
    message: &Value,
) -> io::Result<()> {
    let body = message.to_string();
    let mut request = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nConnection: close\r\n\
         Content-Length: {}\r\n",
        body.len()
    );
    for (name, value) in headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    request.push_str("\r\n");
    request.push_str(&body);
    stream.write_all(request.as_bytes())
}

impl Response {
    /// Reads the head of a response.
    pub(crate) fn read(mut stream: BufReader<TcpStream>) -> io::Result<Self> {
        let start = line(&mut stream)?;
        let status = start.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.ok_or_else(|| broken(&format!("`{start}` is not HTTP")))?;
        let mut head = Vec::new();
        loop {
            let line = line(&mut stream)?;
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(':').ok_or_else(|| broken("a header is broken"))?;
            head.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let chunked = find(&head, "transfer-encoding") == Some("chunked");
        let left = find(&head, "content-length").and_then(|length| length.parse().ok());
        let body = if chunked {
            Body::Chunked(stream, 0)
        } else {
            Body::Plain(stream.take(left.unwrap_or(0)))
        };
        Ok(Self { status, head, body: BufReader::new(body) })
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        find(&self.head, name)
    }

    /// All headers, with names in lower case.
    pub(crate) fn headers(&self) -> &[(String, String)] {
        &self.head
    }

    /// Reads the rest of the body.
    pub(crate) fn text(&mut self) -> io::Result<String> {
        let mut text = String::new();
        self.body.read_to_string(&mut text)?;
        Ok(text)
    }

    /// Returns the next message of the response. `None` is the end.
    pub(crate) fn message(&mut self) -> io::Result<Option<Value>> {
        if self.header("content-type") != Some("text/event-stream") {
            let text = self.text()?;
            return match text.is_empty() {
                true => Ok(None),
                false => Ok(Some(serde_json::from_str(&text)?)),
            };
        }
        loop {
            let mut line = String::new();
            if self.body.read_line(&mut line)? == 0 {
                return Ok(None);
            }
            // Every message is on one line; events without data have only an ID.
            match line.trim_end().strip_prefix("data:").map(str::trim) {
                None | Some("") => {}
                Some(data) => return Ok(Some(serde_json::from_str(data)?)),
            }
        }
    }
}

/// A body with a length or in chunks.
#[derive(Debug)]
enum Body {
    Plain(io::Take<BufReader<TcpStream>>),
    /// The stream, and the remaining bytes of the current chunk.
    Chunked(BufReader<TcpStream>, u64),
}

impl Read for Body {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(body) => {
                let read = body.read(buffer)?;
                // A truncated body means that the server died.
                if read == 0 && body.limit() > 0 && !buffer.is_empty() {
                    return Err(ErrorKind::UnexpectedEof.into());
                }
                Ok(read)
            }
            Self::Chunked(stream, left) => {
                if *left == 0 {
                    let size = line(stream)?;
                    // The line end of the previous chunk precedes the next size.
                    let size = if size.is_empty() { line(stream)? } else { size };
                    *left =
                        u64::from_str_radix(&size, 16).map_err(|_| broken("a chunk is broken"))?;
                    if *left == 0 {
                        return Ok(0);
                    }
                }
                let read = stream.by_ref().take(*left).read(buffer)?;
                if read == 0 {
                    return Err(ErrorKind::UnexpectedEof.into());
                }
                *left -= read as u64;
                Ok(read)
            }
        }
    }
}

fn find<'h>(head: &'h [(String, String)], name: &str) -> Option<&'h str> {
    head.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

fn line(stream: &mut BufReader<TcpStream>) -> io::Result<String> {
    let mut line = String::new();
    if stream.read_line(&mut line)? == 0 || !line.ends_with('\n') {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    line.truncate(line.trim_end().len());
    Ok(line)
}

fn broken(why: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, why)
}
