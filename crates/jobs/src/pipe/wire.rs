//! Protocol between a gateway and a supervisor: frames in both directions.
//!
//! A frame is a head of 21 bytes and a body: the kind, a request ID, a number, and the length of the
//! body. Both sides ignore frames of a kind that they do not know, so that a newer gateway can use a
//! process of an older one.

use std::io;

use bytes::{Buf, Bytes, BytesMut};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tokio::io::{AsyncRead, AsyncReadExt};

/// Version of the protocol.
pub(super) const VERSION: u32 = 1;

/// Maximum bytes of a frame's body, unless a message of the process may be longer.
pub(super) const MAX_BODY: usize = 64 << 20;

/// Bytes of a frame's head.
pub(super) const HEAD: usize = 21;

/// Kind of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    // From the gateway.
    /// First frame: [`Greeting`].
    Hello = 1,
    /// Text that later gateways get.
    Greet = 2,
    /// A message that is not a request.
    Write = 3,
    /// A request. With a number, it is retained for that number of milliseconds.
    Request = 4,
    /// Retains a request for a number of milliseconds without a gateway.
    Retain = 5,
    /// Task of a request.
    Label = 6,
    /// Makes this gateway the owner of a request.
    Attach = 7,
    /// A response to an input request.
    Respond = 8,
    /// The request carries the input request with the ID in the body, under a number.
    Carry = 9,
    /// Cancels a request. The body goes to the process.
    Cancel = 10,
    /// Closes the slot of a request whose response the gateway does not need.
    Done = 11,
    /// Ends the process. With a number, even if others use it.
    End = 12,

    // From the supervisor.
    /// Reply to `Hello`.
    Welcome = 32,
    /// A message of the process.
    Message = 33,
    /// A line of standard error.
    Stderr = 34,
    /// Reply to `Attach`.
    Attached = 35,
    /// The process has ended; the body is the reason.
    Exit = 36,
    /// Reply to `End`, if others use the process.
    Kept = 37,
}

impl Kind {
    const ALL: [Self; 18] = [
        Self::Hello,
        Self::Greet,
        Self::Write,
        Self::Request,
        Self::Retain,
        Self::Label,
        Self::Attach,
        Self::Respond,
        Self::Carry,
        Self::Cancel,
        Self::Done,
        Self::End,
        Self::Welcome,
        Self::Message,
        Self::Stderr,
        Self::Attached,
        Self::Exit,
        Self::Kept,
    ];

    fn read(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == byte)
    }
}

/// First frame of a gateway.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Greeting {
    pub(super) version: u32,
    /// ID of the process. Checked, because a socket name may have been used by another supervisor.
    pub(super) pipe: String,
    /// Whether the gateway only reads the state: it does not keep the process running.
    pub(super) observes: bool,
}

/// A frame.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    pub(super) kind: Kind,
    pub(super) id: u64,
    pub(super) number: u64,
    pub(super) body: Bytes,
}

impl Frame {
    pub(super) fn new(kind: Kind, id: u64) -> Self {
        Self { kind, id, number: 0, body: Bytes::new() }
    }

    pub(super) fn number(self, number: u64) -> Self {
        Self { number, ..self }
    }

    pub(super) fn body(self, body: impl Into<Bytes>) -> Self {
        Self { body: body.into(), ..self }
    }

    pub(super) fn json(self, body: &impl Serialize) -> Self {
        // The types of this protocol have no maps with other keys than strings.
        self.body(serde_json::to_vec(body).unwrap_or_default())
    }

    pub(super) fn read_json<T: DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_slice(&self.body).ok()
    }

    pub(super) fn text(&self) -> Option<&str> {
        std::str::from_utf8(&self.body).ok()
    }

    /// Appends the frame. A line break follows the body if `ends_line`.
    pub(super) fn write(&self, out: &mut BytesMut, ends_line: bool) {
        let length = self.body.len() + usize::from(ends_line);
        out.reserve(HEAD + length);
        out.extend_from_slice(&[self.kind as u8]);
        out.extend_from_slice(&self.id.to_le_bytes());
        out.extend_from_slice(&self.number.to_le_bytes());
        out.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
        out.extend_from_slice(&self.body);
        if ends_line {
            out.extend_from_slice(b"\n");
        }
    }
}

/// Reader of frames.
#[derive(Debug)]
pub(super) struct Frames<R> {
    input: R,
    buffer: BytesMut,
    max_body: usize,
}

impl<R: AsyncRead + Unpin> Frames<R> {
    pub(super) fn new(input: R, max_body: usize) -> Self {
        Self { input, buffer: BytesMut::new(), max_body }
    }

    /// Returns the next frame, or `None` at the end. Cancel safe.
    pub(super) async fn next(&mut self) -> io::Result<Option<Frame>> {
        /// Bytes of one read.
        const CHUNK: usize = 16 << 10;
        loop {
            while let Some((kind, frame)) = self.take()? {
                if kind.is_some() {
                    return Ok(Some(frame));
                }
            }
            self.buffer.reserve(CHUNK);
            if self.input.read_buf(&mut self.buffer).await? == 0 {
                return Ok(None);
            }
        }
    }

    /// Takes a complete frame from the buffer. The kind is `None` if it is not known.
    fn take(&mut self) -> io::Result<Option<(Option<Kind>, Frame)>> {
        let Some(mut head) = self.buffer.get(..HEAD) else { return Ok(None) };
        let kind = Kind::read(head.get_u8());
        let (id, number, length) = (head.get_u64_le(), head.get_u64_le(), head.get_u32_le());
        let length = length as usize;
        if length > self.max_body {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a frame is too long"));
        }
        if self.buffer.len() < HEAD + length {
            self.buffer.reserve(HEAD + length - self.buffer.len());
            return Ok(None);
        }
        self.buffer.advance(HEAD);
        let body = self.buffer.split_to(length).freeze();
        Ok(Some((kind, Frame { kind: kind.unwrap_or(Kind::Write), id, number, body })))
    }
}

#[cfg(test)]
mod tests {
    use super::{BytesMut, Frame, Frames, HEAD, Kind};

    #[tokio::test]
    async fn frames_are_independent_of_chunks_and_unknown_kinds_are_skipped() {
        let mut out = BytesMut::new();
        Frame::new(Kind::Request, 7).number(9).body("{}").write(&mut out, true);
        let unknown = out.len();
        Frame::new(Kind::Done, 8).body("unknown").write(&mut out, false);
        out[unknown] = 200;
        Frame::new(Kind::Kept, u64::MAX).write(&mut out, false);
        for size in [1, 2, HEAD, 1000] {
            let (mut write, read) = tokio::io::duplex(size);
            let text = out.clone();
            let writing = tokio::spawn(async move {
                tokio::io::AsyncWriteExt::write_all(&mut write, &text).await.unwrap();
            });
            let mut frames = Frames::new(read, 100);
            let first = frames.next().await.unwrap().unwrap();
            assert_eq!((first.kind, first.id, first.number), (Kind::Request, 7, 9));
            assert_eq!(&first.body[..], b"{}\n");
            let second = frames.next().await.unwrap().unwrap();
            assert_eq!((second.kind, second.id), (Kind::Kept, u64::MAX));
            assert!(frames.next().await.unwrap().is_none());
            writing.await.unwrap();
        }
    }

    #[tokio::test]
    async fn frame_that_is_too_long_is_error() {
        let mut out = BytesMut::new();
        Frame::new(Kind::Write, 1).body(vec![b'x'; 11]).write(&mut out, false);
        let mut frames = Frames::new(&out[..], 10);
        assert!(frames.next().await.is_err());
    }
}
