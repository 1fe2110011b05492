//! As much of D-Bus as it takes to ask the Secret Service: calls to the session's bus, one at a
//! time, and their answers.
//!
//! Spec: <https://dbus.freedesktop.org/doc/dbus-specification.html>

use std::{
    env, fmt,
    io::{self, BufRead, BufReader, Read, Write},
    os::unix::net::UnixStream,
    path::PathBuf,
    time::Duration,
};

/// How long the bus and whoever it starts may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// No answer that is wanted here is longer.
const LONGEST: usize = 1 << 20;

const LITTLE_ENDIAN: u8 = b'l';
const METHOD_CALL: u8 = 1;
const METHOD_RETURN: u8 = 2;
const ERROR: u8 = 3;

/// A connection to the session's bus.
pub(super) struct Bus {
    stream: BufReader<UnixStream>,
    serial: u32,
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum NoAnswer {
    /// There is no bus.
    NoBus,
    /// Whoever was asked says no, with this name.
    Refused(String),
    Broken(io::Error),
}

impl From<io::Error> for NoAnswer {
    fn from(error: io::Error) -> Self {
        Self::Broken(error)
    }
}

impl fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoBus => f.write_str("there is no session bus"),
            Self::Refused(name) => f.write_str(name),
            Self::Broken(error) if is_late(error) => f.write_str("it does not answer"),
            Self::Broken(error) => error.fmt(f),
        }
    }
}

fn is_late(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

/// What is called.
#[derive(Clone, Copy)]
pub(super) struct Target<'a> {
    pub(super) destination: &'a str,
    pub(super) path: &'a str,
    pub(super) interface: &'a str,
}

impl Bus {
    /// Connects to the bus of the user's session.
    pub(super) fn session() -> Result<Self, NoAnswer> {
        let address = env::var("DBUS_SESSION_BUS_ADDRESS").unwrap_or_default();
        let runtime = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        let stream = connect(&address, runtime).ok_or(NoAnswer::NoBus)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let mut bus = Self { stream: BufReader::new(stream), serial: 0 };
        bus.authenticate()?;
        let name = "org.freedesktop.DBus";
        let to = Target { destination: name, path: "/org/freedesktop/DBus", interface: name };
        bus.call(to, "Hello", "", |_| {})?;
        Ok(bus)
    }

    /// Says who this is: whoever the system says it is.
    fn authenticate(&mut self) -> Result<(), NoAnswer> {
        self.stream.get_mut().write_all(b"\0AUTH EXTERNAL\r\nDATA\r\n")?;
        for expected in ["DATA", "OK"] {
            let mut line = String::new();
            (&mut self.stream).take(512).read_line(&mut line)?;
            if line.split_whitespace().next() != Some(expected) {
                return Err(NoAnswer::Refused("the session bus does not let us in".to_owned()));
            }
        }
        Ok(self.stream.get_mut().write_all(b"BEGIN\r\n")?)
    }

    /// Calls a method, and waits for what it returns.
    pub(super) fn call(
        &mut self,
        to: Target<'_>,
        member: &str,
        signature: &str,
        arguments: impl FnOnce(&mut Writer),
    ) -> Result<Reader, NoAnswer> {
        self.serial += 1;
        let mut body = Writer::default();
        arguments(&mut body);
        let message = written(self.serial, to, member, signature, &body.bytes);
        self.stream.get_mut().write_all(&message)?;
        loop {
            let (kind, header, body) = self.receive()?;
            match kind {
                METHOD_RETURN if header.reply_to == self.serial => return Ok(Reader::new(body)),
                ERROR if header.reply_to == self.serial => {
                    return Err(NoAnswer::Refused(header.error));
                }
                // Signals, which nobody waits for.
                _ => {}
            }
        }
    }

    fn receive(&mut self) -> Result<(u8, Header, Vec<u8>), NoAnswer> {
        let mut fixed = [0; 16];
        self.stream.read_exact(&mut fixed)?;
        if fixed[0] != LITTLE_ENDIAN {
            return Err(malformed().into());
        }
        let number = |at: usize| {
            u32::from_le_bytes([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]]) as usize
        };
        let (body, fields) = (number(4), number(12));
        if body > LONGEST || fields > LONGEST {
            return Err(malformed().into());
        }
        // Fields are aligned from the message's beginning, of which 16 bytes are read.
        let mut header = vec![0; fields.next_multiple_of(8)];
        self.stream.read_exact(&mut header)?;
        header.truncate(fields);
        let mut rest = vec![0; body];
        self.stream.read_exact(&mut rest)?;
        Ok((fixed[1], Header::read(header)?, rest))
    }
}

fn malformed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "it says what cannot be read")
}

/// Connects to the first address that can be.
fn connect(addresses: &str, runtime: Option<PathBuf>) -> Option<UnixStream> {
    let named = addresses.split(';').filter_map(|address| address.trim().strip_prefix("unix:"));
    for address in named {
        for (key, value) in address.split(',').filter_map(|pair| pair.split_once('=')) {
            let value = unescaped(value)?;
            let stream = match key {
                "path" => UnixStream::connect(value).ok(),
                "abstract" => connect_abstract(&value),
                _ => None,
            };
            if stream.is_some() {
                return stream;
            }
        }
    }
    // Where systemd puts it, for programs that were started without its address.
    let usual = runtime.filter(|_| addresses.is_empty())?.join("bus");
    UnixStream::connect(usual).ok()
}

#[cfg(target_os = "linux")]
fn connect_abstract(name: &str) -> Option<UnixStream> {
    use std::os::{linux::net::SocketAddrExt, unix::net::SocketAddr};

    UnixStream::connect_addr(&SocketAddr::from_abstract_name(name).ok()?).ok()
}

#[cfg(not(target_os = "linux"))]
fn connect_abstract(_: &str) -> Option<UnixStream> {
    None
}

/// A value of an address, in which bytes may be written as `%2d`.
fn unescaped(value: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let [first, tail @ ..] = rest {
        match (first, tail) {
            (b'%', [high, low, after @ ..]) => {
                let digits = [*high, *low];
                bytes.push(u8::from_str_radix(str::from_utf8(&digits).ok()?, 16).ok()?);
                rest = after;
            }
            _ => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8(bytes).ok()
}

/// A call, as it is sent.
fn written(serial: u32, to: Target<'_>, member: &str, signature: &str, body: &[u8]) -> Vec<u8> {
    let mut message = Writer::default();
    message.bytes.extend([LITTLE_ENDIAN, METHOD_CALL, 0, 1]);
    message.number(body.len() as u32);
    message.number(serial);
    message.array(8, |fields| {
        for (code, kind, value) in
            [(1, "o", to.path), (2, "s", to.interface), (3, "s", member), (6, "s", to.destination)]
        {
            fields.align(8);
            fields.bytes.push(code);
            fields.signature(kind);
            fields.text(value);
        }
        if !signature.is_empty() {
            fields.align(8);
            fields.bytes.push(8);
            fields.signature("g");
            fields.signature(signature);
        }
    });
    message.align(8);
    message.bytes.extend(body);
    message.bytes
}

/// What is read of an answer's header.
#[derive(Default)]
struct Header {
    reply_to: u32,
    error: String,
}

impl Header {
    fn read(fields: Vec<u8>) -> Result<Self, NoAnswer> {
        let (mut header, mut fields) = (Self::default(), Reader::new(fields));
        while !fields.is_empty() {
            fields.align(8)?;
            let code = fields.byte()?;
            let kind = fields.signature()?;
            match (code, kind.as_str()) {
                (5, "u") => header.reply_to = fields.number()?,
                (4, "s") => header.error = fields.text()?,
                (_, "u") => drop(fields.number()?),
                (_, "s" | "o") => drop(fields.text()?),
                (_, "g") => drop(fields.signature()?),
                _ => return Err(malformed().into()),
            }
        }
        Ok(header)
    }
}

/// Writes values, aligned as D-Bus wants them.
#[derive(Default)]
pub(super) struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    pub(super) fn align(&mut self, to: usize) {
        self.bytes.resize(self.bytes.len().next_multiple_of(to), 0);
    }

    fn number(&mut self, number: u32) {
        self.align(4);
        self.bytes.extend(number.to_le_bytes());
    }

    pub(super) fn flag(&mut self, flag: bool) {
        self.number(u32::from(flag));
    }

    /// A string or an object path.
    pub(super) fn text(&mut self, text: &str) {
        self.number(text.len() as u32);
        self.bytes.extend(text.as_bytes());
        self.bytes.push(0);
    }

    /// A signature; in front of a value, the two are a variant.
    pub(super) fn signature(&mut self, signature: &str) {
        self.bytes.push(signature.len() as u8);
        self.bytes.extend(signature.as_bytes());
        self.bytes.push(0);
    }

    /// An array of elements that are aligned to so many bytes.
    pub(super) fn array(&mut self, aligned: usize, elements: impl FnOnce(&mut Self)) {
        self.number(0);
        let at = self.bytes.len() - 4;
        self.align(aligned);
        let begin = self.bytes.len();
        elements(self);
        let length = (self.bytes.len() - begin) as u32;
        self.bytes[at..at + 4].copy_from_slice(&length.to_le_bytes());
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.array(1, |array| array.bytes.extend(bytes));
    }

    /// Texts under texts.
    pub(super) fn map(&mut self, entries: &[(&str, &str)]) {
        self.array(8, |map| {
            for (key, value) in entries {
                map.align(8);
                map.text(key);
                map.text(value);
            }
        });
    }
}

/// Reads values.
pub(super) struct Reader {
    bytes: Vec<u8>,
    at: usize,
}

impl Reader {
    fn new(bytes: Vec<u8>) -> Self {
        Self { bytes, at: 0 }
    }

    fn is_empty(&self) -> bool {
        self.at >= self.bytes.len()
    }

    pub(super) fn align(&mut self, to: usize) -> Result<(), NoAnswer> {
        self.at = self.at.next_multiple_of(to);
        if self.at > self.bytes.len() { Err(malformed().into()) } else { Ok(()) }
    }

    fn take(&mut self, count: usize) -> Result<&[u8], NoAnswer> {
        let end = self.at.checked_add(count).filter(|end| *end <= self.bytes.len());
        let end = end.ok_or_else(malformed)?;
        let taken = &self.bytes[self.at..end];
        self.at = end;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, NoAnswer> {
        Ok(self.take(1)?[0])
    }

    pub(super) fn number(&mut self) -> Result<u32, NoAnswer> {
        self.align(4)?;
        let bytes = self.take(4)?;
        Ok(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    /// A string or an object path.
    pub(super) fn text(&mut self) -> Result<String, NoAnswer> {
        let length = self.number()? as usize;
        let text = String::from_utf8(self.take(length)?.to_vec()).map_err(|_| malformed())?;
        self.byte()?;
        Ok(text)
    }

    pub(super) fn signature(&mut self) -> Result<String, NoAnswer> {
        let length = usize::from(self.byte()?);
        let text = String::from_utf8(self.take(length)?.to_vec()).map_err(|_| malformed())?;
        self.byte()?;
        Ok(text)
    }

    pub(super) fn bytes(&mut self) -> Result<Vec<u8>, NoAnswer> {
        let length = self.number()? as usize;
        Ok(self.take(length)?.to_vec())
    }

    /// An array of strings or object paths.
    pub(super) fn texts(&mut self) -> Result<Vec<String>, NoAnswer> {
        let length = self.number()? as usize;
        let end = self.at.checked_add(length).filter(|end| *end <= self.bytes.len());
        let end = end.ok_or_else(malformed)?;
        let mut texts = Vec::new();
        while self.at < end {
            texts.push(self.text()?);
        }
        Ok(texts)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::{Header, Reader, Target, Writer, connect, unescaped, written};

    #[test]
    fn a_call_is_written_as_the_bus_wants_it() {
        let to = Target { destination: "a.b", path: "/", interface: "c.d" };
        let mut body = Writer::default();
        body.text("x");
        let message = written(7, to, "Do", "s", &body.bytes);
        assert_eq!(&message[..12], b"l\x01\0\x01\x06\0\0\0\x07\0\0\0");
        assert_eq!(message.len() % 8, body.bytes.len() % 8);
        assert!(message.ends_with(b"\x01\0\0\0x\0"));
        let fields = u32::from_le_bytes(message[12..16].try_into().unwrap()) as usize;
        let mut fields = Reader::new(message[16..16 + fields].to_vec());
        let mut read = Vec::new();
        while !fields.is_empty() {
            fields.align(8).unwrap();
            let (code, kind) = (fields.byte().unwrap(), fields.signature().unwrap());
            let value = if kind == "g" { fields.signature() } else { fields.text() };
            read.push(format!("{code}{kind}={}", value.unwrap()));
        }
        assert_eq!(read, ["1o=/", "2s=c.d", "3s=Do", "6s=a.b", "8g=s"]);
    }

    #[test]
    fn what_is_written_is_read_again() {
        let mut out = Writer::default();
        out.flag(true);
        out.bytes(b"abc");
        out.array(4, |array| ["/a", "/b/c"].iter().for_each(|path| array.text(path)));
        out.map(&[("k", "v")]);
        let mut read = Reader::new(out.bytes);
        assert_eq!(read.number().unwrap(), 1);
        assert_eq!(read.bytes().unwrap(), b"abc");
        assert_eq!(read.texts().unwrap(), ["/a", "/b/c"]);
        assert!(read.number().unwrap() > 0);
        read.align(8).unwrap();
        assert_eq!((read.text().unwrap(), read.text().unwrap()), ("k".into(), "v".into()));
        assert!(read.is_empty());
    }

    #[test]
    fn what_is_cut_or_wrong_is_no_value() {
        let mut out = Writer::default();
        out.text("hello");
        for length in 0..out.bytes.len() {
            assert!(Reader::new(out.bytes[..length].to_vec()).text().is_err(), "{length}");
        }
        assert!(Reader::new(vec![255; 4]).bytes().is_err());
        assert!(Reader::new(vec![255, 255, 255, 255, 0]).texts().is_err());
        assert!(Header::read(vec![9, 1, b'x', 0]).is_err());
    }

    #[test]
    fn an_address_may_have_several_parts() {
        let folder = std::env::temp_dir().join(format!("outlive bus {}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let _listener = UnixListener::bind(folder.join("bus")).unwrap();
        let escaped = folder.display().to_string().replace(' ', "%20");
        let address = format!("tcp:host=x;unix:path={escaped}/none;unix:path={escaped}/bus,guid=1");
        assert!(connect(&address, None).is_some());
        assert!(connect("", Some(folder.clone())).is_some());
        // What was named and is not there is not looked for elsewhere.
        assert!(connect("unix:path=/nowhere", Some(folder.clone())).is_none());
        assert!(connect("", None).is_none());
        assert_eq!(unescaped("a%2fb"), Some("a/b".to_owned()));
        assert_eq!(unescaped("a%zz"), None);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
