//! The server over Streamable HTTP of 2025-06-18: one process and one session for all principals.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::messages::{confirmed, form, handshake, mark_of, not_found, response, text, tools};

/// The session of all clients.
const SESSION: &str = "the-same-session";

/// Time for an input response.
const PATIENCE: Duration = Duration::from_secs(60);

/// Channels of the calls that wait for an input response, by the ID of the input request.
type Asked = Arc<Mutex<HashMap<u64, mpsc::Sender<Value>>>>;

/// Listens on a free port, and writes the port to a file. Ends with standard input.
pub(super) fn serve(file: &str) -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let beside = format!("{file}.new");
    std::fs::write(&beside, listener.local_addr()?.port().to_string())?;
    std::fs::rename(beside, file)?;
    thread::spawn(|| {
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        std::process::exit(0);
    });
    let asked = Asked::default();
    for stream in listener.incoming() {
        let (stream, asked) = (stream?, Arc::clone(&asked));
        thread::spawn(move || connection(&stream, &asked));
    }
    Ok(())
}

/// Serves the requests of a connection.
fn connection(stream: &TcpStream, asked: &Asked) -> io::Result<()> {
    let mut input = BufReader::new(stream);
    loop {
        let Some((method, body)) = request(&mut input)? else { return Ok(()) };
        if method != "POST" {
            respond(stream, "405 Method Not Allowed", None)?;
            continue;
        }
        let message: Value = serde_json::from_slice(&body)?;
        match (message["method"].as_str(), message.get("id")) {
            (Some("tools/call"), Some(id)) if message["params"]["name"] == "form" => {
                ask(stream, id, mark_of(&message), asked)?;
            }
            (Some(method), Some(id)) => {
                let answer = answer(method, id, &message);
                respond(stream, "200 OK", Some(&answer))?;
            }
            (None, Some(id)) => {
                let waiting = id.as_u64().and_then(|id| lock(asked).remove(&id));
                if let Some(waiting) = waiting {
                    let _ = waiting.send(message["result"].clone());
                }
                respond(stream, "202 Accepted", None)?;
            }
            _ => respond(stream, "202 Accepted", None)?,
        }
    }
}

/// Reads a request. Returns its method and body; `None` at the end of the connection.
fn request(input: &mut impl BufRead) -> io::Result<Option<(String, Vec<u8>)>> {
    let (mut method, mut length) = (None, 0);
    loop {
        let mut line = String::new();
        if input.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let line = line.trim_end();
        match (&method, line.split_once(':')) {
            (None, _) => method = line.split(' ').next().map(str::to_owned),
            (Some(_), Some((name, value))) if name.eq_ignore_ascii_case("content-length") => {
                length = value.trim().parse().map_err(io::Error::other)?;
            }
            (Some(_), None) if line.is_empty() => break,
            _ => {}
        }
    }
    let mut body = vec![0; length];
    input.read_exact(&mut body)?;
    Ok(method.map(|method| (method, body)))
}

fn answer(method: &str, id: &Value, message: &Value) -> Value {
    match method {
        "initialize" => response(id, &handshake("2025-06-18")),
        "tools/list" => response(id, &tools(&["echo", "form"])),
        "tools/call" => response(id, &text(mark_of(message))),
        "ping" => response(id, &json!({})),
        _ => not_found(id),
    }
}

/// Requests input on the stream of a call.
fn ask(stream: &TcpStream, id: &Value, mark: &str, asked: &Asked) -> io::Result<()> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let (sender, responses) = mpsc::channel();
    lock(asked).insert(number, sender);
    let mut out = stream;
    write!(
        out,
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    )?;
    let request = json!({
        "jsonrpc": "2.0", "id": number, "method": "elicitation/create", "params": form(mark),
    });
    chunk(stream, &format!("data: {request}\n\n"))?;
    let said = responses.recv_timeout(PATIENCE).map_err(io::Error::other)?;
    let answer = response(id, &confirmed(mark, &said));
    chunk(stream, &format!("data: {answer}\n\n"))?;
    chunk(stream, "")
}

fn chunk(mut stream: &TcpStream, text: &str) -> io::Result<()> {
    write!(stream, "{:x}\r\n{text}\r\n", text.len())
}

fn respond(mut stream: &TcpStream, status: &str, body: Option<&Value>) -> io::Result<()> {
    let body = body.map(Value::to_string).unwrap_or_default();
    write!(
        stream,
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\nmcp-session-id: {SESSION}\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn lock(asked: &Asked) -> std::sync::MutexGuard<'_, HashMap<u64, mpsc::Sender<Value>>> {
    asked.lock().unwrap_or_else(PoisonError::into_inner)
}
