//! Server address or transport to connect to.

use std::{
    fmt,
    future::Future,
    io,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use outlive_protocol::{Endpoint, Principal};
use outlive_transport::{
    client::child::ChildProcess,
    memory,
    messages::{Sink, Source},
};
use tokio::io::{AsyncRead, AsyncWrite};

/// Server to connect to.
#[derive(Clone)]
#[non_exhaustive]
pub enum Target {
    /// URL: Streamable HTTP of either era, or HTTP+SSE.
    Url(String),
    /// Child process that communicates over its standard input and output.
    Program(ChildProcess),
    /// Server in this process.
    Server(InMemoryServer),
    /// Transport that is already open. The client cannot reconnect it.
    Open(OpenedTransport),
    /// Custom transport that the client opens, and opens again to reconnect.
    Custom(CustomTransport),
}

impl Target {
    /// Creates a target from an open byte stream with one message per line.
    pub fn stream<R, W>(input: R, output: W) -> Self
    where
        R: AsyncRead + Unpin + Send + 'static,
        W: AsyncWrite + Unpin + Send + 'static,
    {
        Self::Open(OpenedTransport::new(Ends::Lines(Box::new(input), Box::new(output))))
    }

    /// Creates a target from a custom transport.
    pub fn messages(source: impl Source + 'static, sink: impl Sink + 'static) -> Self {
        Self::Open(OpenedTransport::messages(source, sink))
    }

    /// Creates a target from a function that opens a custom transport. A client that detects the
    /// protocol version may call it twice, because a server may exit at a request that it does not
    /// know.
    pub fn open_with<F, Fut>(open: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = io::Result<OpenedTransport>> + Send + 'static,
    {
        Self::Custom(CustomTransport(Arc::new(move || Box::pin(open()))))
    }

    /// Returns the label of the server in input requests and saved calls.
    pub(crate) fn label(&self) -> String {
        match self {
            Self::Url(url) => url.split(['?', '#']).next().unwrap_or(url).to_owned(),
            Self::Program(program) => program.name(),
            Self::Server(_) => "in this process".to_owned(),
            Self::Open(_) => "an open stream".to_owned(),
            Self::Custom(_) => "a custom transport".to_owned(),
        }
    }
}

impl From<&str> for Target {
    fn from(url: &str) -> Self {
        Self::Url(url.to_owned())
    }
}

impl From<String> for Target {
    fn from(url: String) -> Self {
        Self::Url(url)
    }
}

impl From<ChildProcess> for Target {
    fn from(program: ChildProcess) -> Self {
        Self::Program(program)
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Target").field(&self.label()).finish()
    }
}

/// Server in this process. Convert a `&Server` into a [`Target`] to create one.
#[derive(Clone)]
pub struct InMemoryServer(Arc<dyn Fn() -> Endpoint + Send + Sync>);

impl InMemoryServer {
    pub(crate) fn new(endpoint: impl Fn() -> Endpoint + Send + Sync + 'static) -> Self {
        Self(Arc::new(endpoint))
    }

    /// Opens a connection to the server.
    pub(super) fn connect(&self) -> memory::Connection {
        memory::connect((self.0)(), Principal::LOCAL)
    }
}

impl fmt::Debug for InMemoryServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InMemoryServer")
    }
}

/// Transport that is already open.
#[derive(Clone)]
pub struct OpenedTransport(Arc<Mutex<Option<Ends>>>);

impl OpenedTransport {
    fn new(ends: Ends) -> Self {
        Self(Arc::new(Mutex::new(Some(ends))))
    }

    /// Creates an open transport from its source and sink.
    pub fn messages(source: impl Source + 'static, sink: impl Sink + 'static) -> Self {
        Self::new(Ends::Messages(Box::new(source), Box::new(sink)))
    }

    pub(crate) fn take(&self) -> Option<Ends> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl fmt::Debug for OpenedTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Opened")
    }
}

type Opening = Pin<Box<dyn Future<Output = io::Result<OpenedTransport>> + Send>>;

/// Custom transport that the client opens. See [`Target::open_with`].
#[derive(Clone)]
pub struct CustomTransport(Arc<dyn Fn() -> Opening + Send + Sync>);

impl CustomTransport {
    pub(crate) fn open(&self) -> Opening {
        (self.0)()
    }
}

impl fmt::Debug for CustomTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CustomTransport")
    }
}

/// Input and output of a transport.
pub(crate) enum Ends {
    Lines(Box<dyn AsyncRead + Unpin + Send>, Box<dyn AsyncWrite + Unpin + Send>),
    Messages(Box<dyn DynSource>, Box<dyn DynSink>),
}

type Taking<'a, T> = Pin<Box<dyn Future<Output = io::Result<T>> + Send + 'a>>;

pub(crate) trait DynSource: Send {
    fn receive(&mut self) -> Taking<'_, Option<Bytes>>;
}

impl<S: Source> DynSource for S {
    fn receive(&mut self) -> Taking<'_, Option<Bytes>> {
        Box::pin(Source::receive(self))
    }
}

pub(crate) trait DynSink: Send {
    fn send(&mut self, message: Bytes) -> Taking<'_, ()>;
}

impl<S: Sink> DynSink for S {
    fn send(&mut self, message: Bytes) -> Taking<'_, ()> {
        Box::pin(Sink::send(self, message))
    }
}

/// Adapter from a boxed source or sink to the traits of the transport.
pub(crate) struct Boxed<T: ?Sized>(pub(crate) Box<T>);

impl Source for Boxed<dyn DynSource> {
    async fn receive(&mut self) -> io::Result<Option<Bytes>> {
        self.0.receive().await
    }
}

impl Sink for Boxed<dyn DynSink> {
    async fn send(&mut self, message: Bytes) -> io::Result<()> {
        self.0.send(message).await
    }
}
