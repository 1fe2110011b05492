//! A client made of bytes: lines on a pipe, or POSTs and streams of events over a socket.

use std::{
    env,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    thread,
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

/// How the client reaches its server.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wire {
    Stdio,
    Http,
}

/// Which generation of the protocol it speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Era {
    Modern,
    Legacy,
}

/// A client and the server process it has started.
pub(crate) struct Client {
    era: Era,
    next: u64,
    link: Link,
    /// Notifications that came before somebody waited for them.
    heard: Vec<Value>,
    _server: Server,
}

enum Link {
    Pipe { input: ChildStdin, output: BufReader<ChildStdout> },
    Http { address: String, session: Option<String>, events: Option<BufReader<TcpStream>> },
}

struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Client {
    /// Starts a program of this package and connects to it.
    pub(crate) fn start(program: &str, wire: Wire, era: Era) -> Result<Self> {
        let path = env::current_exe()?.with_file_name(program);
        let mut command = Command::new(&path);
        let mut server = match wire {
            Wire::Stdio => command
                .arg("--stdio")
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::null()),
            Wire::Http => command.args(["--port", "0"]).stderr(Stdio::piped()),
        }
        .spawn()
        .with_context(|| {
            format!("could not start {}; run `cargo build -p outlive-examples`", path.display())
        })?;
        let link = match wire {
            Wire::Stdio => Link::Pipe {
                input: server.stdin.take().context("no input")?,
                output: BufReader::new(server.stdout.take().context("no output")?),
            },
            Wire::Http => {
                let mut talk = BufReader::new(server.stderr.take().context("no stderr")?)
                    .lines()
                    .map_while(Result::ok);
                let address = talk.find_map(|line| {
                    line.strip_prefix("listening on http://")?
                        .strip_suffix("/mcp")
                        .map(str::to_owned)
                });
                // The rest is read too: a program whose talk nobody reads cannot go on talking.
                thread::spawn(move || talk.for_each(drop));
                let address = address.context("the server did not say where it listens")?;
                Link::Http { address, session: None, events: None }
            }
        };
        let mut client = Self { era, next: 0, link, heard: Vec::new(), _server: Server(server) };
        if era == Era::Legacy {
            client.shake_hands()?;
        }
        Ok(client)
    }

    /// Calls a method; its result.
    pub(crate) fn call(&mut self, method: &str, params: Value) -> Result<Value> {
        let answer = self.request(method, params)?;
        ensure!(answer["error"].is_null(), "{method} was refused: {}", answer["error"]);
        if self.era == Era::Modern {
            expect(&answer["result"]["resultType"], &json!("complete"))?;
        }
        Ok(answer["result"].clone())
    }

    /// Calls a method that will be refused; the error.
    pub(crate) fn refused(&mut self, method: &str, params: Value) -> Result<Value> {
        let answer = self.request(method, params)?;
        ensure!(answer["result"].is_null(), "{method} was not refused: {answer}");
        Ok(answer["error"].clone())
    }

    /// Starts to listen for changes. Legacy clients on a pipe hear of them without asking.
    pub(crate) fn listen(&mut self, wanted: &Value) -> Result<()> {
        let acknowledged = "notifications/subscriptions/acknowledged";
        let method = "subscriptions/listen";
        self.next += 1;
        let request = self.message(method, json!({"notifications": wanted}));
        match (&mut self.link, self.era) {
            (Link::Pipe { .. }, Era::Legacy) => return Ok(()),
            (Link::Pipe { input, .. }, Era::Modern) => writeln!(input, "{request}")?,
            (Link::Http { address, events, .. }, Era::Modern) => {
                let bytes = post(address, &modern_headers(method, &request), &request);
                *events = Some(send(address, &bytes)?);
            }
            (Link::Http { address, session, events }, Era::Legacy) => {
                let session = session.as_deref().unwrap_or_default();
                let get = format!(
                    "GET /mcp HTTP/1.1\r\nHost: {address}\r\nAccept: text/event-stream\r\nMcp-Session-Id: {session}\r\n\r\n"
                );
                *events = Some(send(address, get.as_bytes())?);
                return Ok(());
            }
        }
        self.wait_for(acknowledged)
    }

    /// Waits until a notification has come.
    pub(crate) fn wait_for(&mut self, method: &str) -> Result<()> {
        while !self.heard.iter().any(|message| message["method"] == method) {
            let mut line = String::new();
            let read = match &mut self.link {
                Link::Pipe { output, .. } => output.read_line(&mut line)?,
                Link::Http { events: Some(events), .. } => events.read_line(&mut line)?,
                Link::Http { events: None, .. } => bail!("nobody listens"),
            };
            ensure!(read > 0, "the stream ended before {method} came");
            // Heads, chunk lengths and comments are lines too; messages are those that parse.
            let json = line.trim().strip_prefix("data: ").unwrap_or(line.trim());
            if let Ok(message @ Value::Object(_)) = serde_json::from_str(json) {
                self.heard.push(message);
            }
        }
        self.heard.retain(|message| message["method"] != method);
        Ok(())
    }

    fn shake_hands(&mut self) -> Result<()> {
        let version = "2025-11-25";
        let client = json!({"name": "check", "version": "1"});
        let hello = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": client});
        let answer = self.call("initialize", hello)?;
        expect(&answer["protocolVersion"], &json!(version))?;
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        match &mut self.link {
            Link::Pipe { input, .. } => writeln!(input, "{ready}")?,
            Link::Http { address, session, .. } => {
                let mut stream =
                    send(address, &post(address, &session_header(session.as_deref()), &ready))?;
                let (head, _) = read_response(&mut stream)?;
                ensure!(
                    head.starts_with("HTTP/1.1 202"),
                    "the notification was not accepted: {head}"
                );
            }
        }
        Ok(())
    }

    fn request(&mut self, method: &str, params: Value) -> Result<Value> {
        self.next += 1;
        let request = self.message(method, params);
        match &mut self.link {
            Link::Pipe { input, output } => {
                writeln!(input, "{request}")?;
                loop {
                    let mut line = String::new();
                    ensure!(output.read_line(&mut line)? > 0, "the server has closed its output");
                    let message: Value = serde_json::from_str(&line)?;
                    match message["id"] == request["id"] && message.get("method").is_none() {
                        true => return Ok(message),
                        false => self.heard.push(message),
                    }
                }
            }
            Link::Http { address, session, .. } => {
                let headers = match self.era {
                    Era::Modern => modern_headers(method, &request),
                    Era::Legacy => session_header(session.as_deref()),
                };
                let mut stream = send(address, &post(address, &headers, &request))?;
                let (head, body) = read_response(&mut stream)?;
                if let Some(issued) =
                    head.lines().find_map(|line| line.strip_prefix("mcp-session-id: "))
                {
                    *session = Some(issued.to_owned());
                }
                // A stream of events ends with the answer.
                let json = body
                    .lines()
                    .filter_map(|line| line.strip_prefix("data: "))
                    .next_back()
                    .unwrap_or(&body);
                serde_json::from_str(json)
                    .with_context(|| format!("no JSON in the answer: {head}\n{body}"))
            }
        }
    }

    fn message(&self, method: &str, mut params: Value) -> Value {
        if self.era == Era::Modern {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
            });
        }
        json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params})
    }
}

/// Fails with both values unless they are equal.
pub(crate) fn expect(actual: &Value, expected: &Value) -> Result<()> {
    ensure!(actual == expected, "expected {expected}, got {actual}");
    Ok(())
}

/// 2026-07-28 repeats parts of the body in headers.
fn modern_headers(method: &str, message: &Value) -> String {
    let params = &message["params"];
    let name = params["name"].as_str().or(params["uri"].as_str());
    let name = name.map(|name| format!("Mcp-Name: {name}\r\n")).unwrap_or_default();
    format!("MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n{name}")
}

fn session_header(session: Option<&str>) -> String {
    session.map(|session| format!("Mcp-Session-Id: {session}\r\n")).unwrap_or_default()
}

fn post(address: &str, headers: &str, message: &Value) -> Vec<u8> {
    let body = message.to_string();
    let length = body.len();
    format!(
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nConnection: close\r\n\
         Content-Length: {length}\r\n{headers}\r\n{body}"
    )
    .into_bytes()
}

fn send(address: &str, request: &[u8]) -> Result<BufReader<TcpStream>> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    stream.write_all(request)?;
    Ok(BufReader::new(stream))
}

/// Reads a response to its end: head and body.
fn read_response(stream: &mut impl Read) -> Result<(String, String)> {
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    let (head, body) = text.split_once("\r\n\r\n").context("no end of the response's head")?;
    Ok((head.to_owned(), body.to_owned()))
}
