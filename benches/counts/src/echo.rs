//! The measured server: one tool with typed arguments and all default checks.

use std::{
    hint::black_box,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use anyhow::{Context as _, Result, bail};
use bytes::Bytes;
use http::request::Parts;
use outlive::server::{
    Args, BuildError, Durable, Principal, Server, ServerBuilder, Tool, layer::Session,
};
use outlive_protocol::{Accepted, Endpoint, InFlight, MessageContext};

use crate::messages;

/// Arguments of the tool.
#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
struct EchoArgs {
    message: String,
}

async fn echo(Args(args): Args<EchoArgs>) -> String {
    args.message
}

/// The same tool with a durable context that it does not use.
async fn echo_durable(_cx: Durable, Args(args): Args<EchoArgs>) -> String {
    args.message
}

/// Builds the server.
///
/// # Errors
///
/// Fails only if the fixed configuration is invalid.
pub fn server() -> Result<Server, BuildError> {
    with(tool())
}

/// The tool of the server.
pub fn tool() -> Tool {
    Tool::new("echo", echo)
}

/// Builds the server with the durable handler.
///
/// # Errors
///
/// Fails only if the fixed configuration is invalid.
pub fn durable_server() -> Result<Server, BuildError> {
    with(Tool::new("echo", echo_durable))
}

/// Builds the server with this many tools; calls use one of them.
///
/// # Errors
///
/// Fails only if the fixed configuration is invalid.
pub fn server_of(tools: usize) -> Result<Server, BuildError> {
    let others = (1..tools).map(|number| Tool::new(format!("echo-{number}"), echo));
    let builder = others.fold(builder(tool()), ServerBuilder::tool);
    builder.build()
}

fn with(tool: Tool) -> Result<Server, BuildError> {
    builder(tool).build()
}

fn builder(tool: Tool) -> ServerBuilder {
    Server::builder("bench", "1.0.0").tool(tool.description("Returns its argument"))
}

/// A path of messages through the server, without the transport.
#[derive(Debug)]
pub struct Path {
    endpoint: Endpoint,
    kind: Kind,
    message: Bytes,
}

#[derive(Debug)]
enum Kind {
    Http { parts: Parts, session: Option<Arc<Session>> },
    Pipe { in_flight: InFlight },
}

impl Path {
    /// 2026-07-28 over HTTP.
    ///
    /// # Errors
    ///
    /// Returns an error if the server cannot be built.
    pub fn modern_http(message: impl Into<Bytes>) -> Result<Self> {
        Self::to(server()?.endpoint(), messages::MODERN_CALL_HEADERS, message)
    }

    /// 2026-07-28 over HTTP, to any server.
    ///
    /// # Errors
    ///
    /// Returns an error if a header is invalid.
    pub fn to(
        endpoint: Endpoint,
        headers: &[(&str, &str)],
        message: impl Into<Bytes>,
    ) -> Result<Self> {
        let kind = Kind::Http { parts: parts(headers)?, session: None };
        Ok(Self { endpoint, kind, message: message.into() })
    }

    /// The same path to the durable handler.
    ///
    /// # Errors
    ///
    /// Returns an error if the server cannot be built.
    pub fn to_durable(mut self) -> Result<Self> {
        self.endpoint = durable_server()?.endpoint();
        Ok(self)
    }

    /// 2025-11-25 over HTTP, in a session.
    ///
    /// # Errors
    ///
    /// Returns an error if the server cannot be built or does not open a session.
    pub fn legacy_http(message: impl Into<Bytes>) -> Result<Self> {
        let endpoint = server()?.endpoint();
        let arrival = arrival(Some(parts(&[])?), None, None);
        let Accepted::Handshake(_, session) =
            endpoint.accept(&Bytes::from_static(messages::INITIALIZE.as_bytes()), arrival)
        else {
            bail!("the handshake was not accepted");
        };
        let parts = parts(&[
            ("mcp-protocol-version", "2025-11-25"),
            ("mcp-session-id", "0123456789abcdef0123456789abcdef"),
        ])?;
        Ok(Self {
            endpoint,
            kind: Kind::Http { parts, session: Some(session) },
            message: message.into(),
        })
    }

    /// 2026-07-28 on a pipe.
    ///
    /// # Errors
    ///
    /// Returns an error if the server cannot be built.
    pub fn modern_pipe(message: impl Into<Bytes>) -> Result<Self> {
        let kind = Kind::Pipe { in_flight: InFlight::default() };
        Ok(Self { endpoint: server()?.endpoint(), kind, message: message.into() })
    }

    /// Creates the context that the transport provides. It is not part of the measurement.
    pub fn arrive(&self) -> MessageContext<'_> {
        match &self.kind {
            Kind::Http { parts, session } => arrival(Some(parts.clone()), session.clone(), None),
            Kind::Pipe { in_flight } => arrival(None, None, Some(in_flight)),
        }
    }

    /// Handles the message from bytes to bytes: decodes, dispatches, polls once, encodes.
    ///
    /// # Errors
    ///
    /// Returns an error if the call is not ready after one poll.
    pub fn answer(&self, arrival: MessageContext<'_>, out: &mut Vec<u8>) -> Result<()> {
        let Accepted::Call(mut run) = self.endpoint.accept(&self.message, arrival) else {
            bail!("the call was not accepted");
        };
        match run.poll_message(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Some(message)) => {
                run.encode(message, out);
                Ok(())
            }
            _ => bail!("the call was not ready after one poll"),
        }
    }

    /// The same, but waits for the response.
    ///
    /// # Errors
    ///
    /// Returns an error if the call gets no response.
    pub async fn answer_later(&self, arrival: MessageContext<'_>, out: &mut Vec<u8>) -> Result<()> {
        let Accepted::Call(mut run) = self.endpoint.accept(&self.message, arrival) else {
            bail!("the call was not accepted");
        };
        let message = run.next().await.context("the call got no response")?;
        run.encode(message, out);
        Ok(())
    }

    /// The same as [`Path::repeat`], but waits for each response.
    ///
    /// # Errors
    ///
    /// Returns an error if a call gets no response.
    pub async fn repeat_later(&self, times: u64) -> Result<()> {
        let mut out = Vec::with_capacity(512);
        for _ in 0..times {
            out.clear();
            self.answer_later(self.arrive(), &mut out).await?;
            black_box(&out);
        }
        Ok(())
    }

    /// Handles the message `times` times, for instruction counts.
    ///
    /// # Errors
    ///
    /// Returns an error if a call gets no response.
    pub fn repeat(&self, times: u64) -> Result<()> {
        let mut out = Vec::with_capacity(512);
        for _ in 0..times {
            out.clear();
            self.answer(self.arrive(), &mut out)?;
            black_box(&out);
        }
        Ok(())
    }
}

fn arrival(
    http: Option<Parts>,
    session: Option<Arc<Session>>,
    in_flight: Option<&InFlight>,
) -> MessageContext<'_> {
    MessageContext {
        principal: Principal::ANONYMOUS,
        session,
        in_flight,
        peer: None,
        http: http.map(Box::new),
        stateless: false,
        lost_session: false,
        legacy_only: false,
    }
}

/// The head of a request, with the usual headers of clients.
fn parts(headers: &[(&str, &str)]) -> Result<Parts> {
    let usual = [
        ("host", "localhost"),
        ("accept", "application/json, text/event-stream"),
        ("content-type", "application/json"),
        ("content-length", "270"),
    ];
    let request = http::Request::post("/mcp");
    let request = usual
        .iter()
        .chain(headers)
        .fold(request, |request, (name, value)| request.header(*name, *value));
    Ok(request.body(()).context("the headers are fixed and well-formed")?.into_parts().0)
}
