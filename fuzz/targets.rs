//! Fuzz targets: bytes from untrusted peers. The normal tests replay the corpus too.

use std::{
    io::Cursor,
    sync::OnceLock,
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request};
use outlive::server::{Args, Server, Tool, http::SseReader};
use outlive_protocol::{
    Accepted, Endpoint, InFlight, Incoming, IncomingKind, MessageContext, Principal, Run, era,
};
use outlive_transport::client::{
    TransportErrorKind,
    pipe::{PipeLimits, PipeLink},
};
use tokio::{io::AsyncReadExt, sync::mpsc};

/// Treats any bytes as a message on a pipe. The server responds, rejects or ignores it; every
/// response is one line of JSON.
pub(crate) fn envelope(data: &[u8]) {
    let arrival = arrival(None);
    answer(endpoint().accept(&Bytes::copy_from_slice(data), arrival));
}

/// Treats any bytes as an event stream. One read or two partial reads must yield the same events.
pub(crate) fn sse_reader(data: &[u8]) {
    let Some((split, stream)) = data.split_first() else { return };
    let read = |pieces: &[&[u8]]| {
        let mut reader = SseReader::new(1 << 12);
        let mut events = Vec::new();
        for piece in pieces {
            if reader.push(piece, |event| events.push(event)).is_err() {
                break;
            }
        }
        events
    };
    let (first, second) = stream.split_at(usize::from(*split).min(stream.len()));
    assert_eq!(read(&[stream]), read(&[first, second]));
}

/// Treats any bytes as mirrored headers: `name`, a line feed, and the value of `Mcp-Name`.
pub(crate) fn headers(data: &[u8]) {
    let Some(at) = data.iter().position(|byte| *byte == b'\n') else { return };
    let (name, value) = (&data[..at], &data[at + 1..]);
    let (Ok(name), Ok(value)) = (str::from_utf8(name), HeaderValue::from_bytes(value)) else {
        return;
    };
    let request = Request::builder()
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", &value)
        .body(());
    let Ok(request) = request else { return };
    let (parts, ()) = request.into_parts();
    let decoded = era::mirrored_header(&parts.headers, &HeaderName::from_static("mcp-name"));
    let message = serde_json::json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
    "name": name, "arguments": {"message": "m"}, "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }}});
    let accepted = endpoint().accept(&Bytes::from(message.to_string()), arrival(Some(parts)));
    // The server accepts a header exactly if its decoded value equals the name.
    let equal = decoded.is_ok_and(|decoded| decoded.as_deref() == Some(name));
    assert_eq!(matches!(accepted, Accepted::Call(_)), equal, "{name:?} {value:?}");
}

/// Treats any bytes as the output of a server on stdio, read by the relay. One read or two partial
/// reads must yield the same messages, and every message is a part of the output.
pub(crate) fn relay_lines(data: &[u8]) {
    let Some((split, stream)) = data.split_first() else { return };
    let (first, second) = stream.split_at(usize::from(*split).min(stream.len()));
    let whole = relayed(stream, &[]);
    assert_eq!(whole, relayed(first, second));
    let output = String::from_utf8_lossy(stream);
    for message in whole.concat() {
        assert!(output.contains(&*message), "{message} is not in the output");
    }
}

/// Returns the payloads of the messages for the request with ID 1, and those of all others.
fn relayed(first: &[u8], second: &[u8]) -> [Vec<String>; 2] {
    let (first, second) = (Cursor::new(first.to_vec()), Cursor::new(second.to_vec()));
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        // Large queues, because dropped messages depend on the scheduler.
        let limits = PipeLimits { message_bytes: 1 << 12, queued: 1 << 20, invalid: usize::MAX };
        let (others, mut taken) = mpsc::channel(1 << 10);
        let input = first.chain(second);
        let link = PipeLink::lines(input, tokio::io::sink(), limits, others);
        let mut mailbox = link.expect(1);
        let (mut own, mut rest) = (Vec::new(), Vec::new());
        let own_messages = async {
            loop {
                match mailbox.next().await {
                    Ok(message) => own.push(payload(&message)),
                    // Later lines may respond too.
                    Err(error) if matches!(error.kind(), TransportErrorKind::TooLarge(_)) => {}
                    Err(_) => break,
                }
            }
        };
        let other_messages = async {
            while let Some(message) = taken.recv().await {
                rest.push(payload(&message));
            }
        };
        tokio::join!(own_messages, other_messages);
        [own, rest]
    })
}

/// The result, or the parameters.
fn payload(message: &Incoming) -> String {
    match message.kind() {
        IncomingKind::Result { .. } => message.result().unwrap_or_default().to_owned(),
        // Its text is decoded, so it is not a part of the output.
        IncomingKind::Error { .. } => String::new(),
        _ if message.params_text() == "{}" => String::new(),
        _ => message.params_text().to_owned(),
    }
}

fn answer(accepted: Accepted) {
    match accepted {
        Accepted::Call(run) | Accepted::Handshake(run, _) => drive(run),
        Accepted::Refused(refusal) => check(&refusal.body),
        Accepted::Batch(parts) => parts.into_iter().for_each(answer),
        Accepted::Noted | Accepted::Misrouted(_) => {}
    }
}

fn drive(mut run: Run) {
    let mut cx = Context::from_waker(Waker::noop());
    while let Poll::Ready(Some(message)) = run.poll_message(&mut cx) {
        let mut out = Vec::new();
        run.encode(message, &mut out);
        check(&out);
    }
}

fn check(line: &[u8]) {
    if !line.is_empty() {
        assert!(!line.contains(&b'\n'), "a line break inside a message");
        serde_json::from_slice::<serde_json::Value>(line).expect("a response is JSON");
    }
}

fn arrival(http: Option<http::request::Parts>) -> MessageContext<'static> {
    static RUNNING: OnceLock<InFlight> = OnceLock::new();
    MessageContext {
        principal: Principal::LOCAL,
        session: None,
        in_flight: Some(RUNNING.get_or_init(InFlight::default)),
        peer: None,
        http: http.map(Box::new),
        stateless: true,
        lost_session: false,
        legacy_only: false,
    }
}

fn endpoint() -> &'static Endpoint {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Echo {
        message: String,
    }
    static ENDPOINT: OnceLock<Endpoint> = OnceLock::new();
    ENDPOINT.get_or_init(|| {
        let echo = Tool::new("echo", |Args(echo): Args<Echo>| async move { echo.message });
        Server::builder("fuzz", "0")
            .tool(echo)
            .advertise_prompts()
            .advertise_resources()
            .build()
            .expect("the server builds")
            .endpoint()
    })
}
