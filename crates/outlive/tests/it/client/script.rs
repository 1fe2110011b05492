//! Scripted peers: they record each request, and the test supplies each response.

use std::{
    collections::BTreeMap,
    future::Future,
    sync::{Arc, Mutex},
};

use outlive::client::Target;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
};

/// A recorded HTTP request.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) verb: String,
    pub(super) path: String,
    pub(super) headers: BTreeMap<String, String>,
    pub(super) body: Value,
}

impl Seen {
    pub(super) fn method(&self) -> &str {
        self.body["method"].as_str().unwrap_or_default()
    }

    pub(super) fn id(&self) -> &Value {
        &self.body["id"]
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }
}

/// A server on a real socket that responds with the result of a function.
pub(super) struct HttpScript {
    pub(super) url: String,
    pub(super) seen: Arc<Mutex<Vec<Seen>>>,
}

/// The raw response. Without a length, the peer closes the connection after it.
pub(super) type Bytes = String;

impl HttpScript {
    pub(super) async fn new<F, Fut>(answer: F) -> Self
    where
        F: Fn(Seen, usize) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Bytes> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
        let (noted, answer) = (Arc::clone(&seen), Arc::new(answer));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (noted, answer) = (Arc::clone(&noted), Arc::clone(&answer));
                tokio::spawn(async move { serve(stream, &noted, &*answer).await });
            }
        });
        Self { url, seen }
    }

    /// Returns all recorded requests with this method.
    pub(super) fn all(&self, method: &str) -> Vec<Seen> {
        let seen = self.seen.lock().unwrap();
        seen.iter().filter(|seen| seen.method() == method).cloned().collect()
    }
}

async fn serve<F, Fut>(stream: TcpStream, noted: &Mutex<Vec<Seen>>, answer: &F)
where
    F: Fn(Seen, usize) -> Fut,
    Fut: Future<Output = Bytes>,
{
    let mut stream = BufReader::new(stream);
    while let Some(seen) = read(&mut stream).await {
        let count = {
            let mut noted = noted.lock().unwrap();
            noted.push(seen.clone());
            noted.iter().filter(|other| other.method() == seen.method()).count()
        };
        let bytes = answer(seen, count).await;
        if stream.get_mut().write_all(bytes.as_bytes()).await.is_err()
            || !bytes.to_ascii_lowercase().contains("content-length:")
        {
            return;
        }
    }
}

async fn read(stream: &mut BufReader<TcpStream>) -> Option<Seen> {
    let mut line = String::new();
    stream.read_line(&mut line).await.ok().filter(|read| *read > 0)?;
    let mut words = line.split(' ');
    let (verb, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.ok()?;
        let line = line.trim_end_matches(['\r', '\n']);
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':')?;
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").and_then(|it| it.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    Some(Seen { verb, path, headers, body })
}

/// A response with a JSON body.
pub(super) fn with_status(status: u16, headers: &str, body: &Value) -> Bytes {
    let body = body.to_string();
    let length = body.len();
    format!(
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\
         {headers}\r\n{body}"
    )
}

/// A response without a body.
pub(super) fn empty(status: u16) -> Bytes {
    format!("HTTP/1.1 {status} X\r\ncontent-length: 0\r\n\r\n")
}

/// A response with a result, as JSON.
pub(super) fn ok(seen: &Seen, result: &Value) -> Bytes {
    with_status(200, "", &json!({"jsonrpc": "2.0", "id": seen.id(), "result": result}))
}

/// A response with an error, as JSON.
pub(super) fn refuse(seen: &Seen, status: u16, code: i32, data: &Value) -> Bytes {
    let error = json!({"code": code, "message": "no", "data": data});
    with_status(status, "", &json!({"jsonrpc": "2.0", "id": seen.id(), "error": error}))
}

/// An event stream that ends with the connection.
pub(super) fn events(events: &str) -> Bytes {
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n{events}"
    )
}

/// The discovery result of a modern server.
pub(super) fn discovered() -> Value {
    json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}})
}

/// The `initialize` result of a legacy server.
pub(super) fn initialized(version: &str) -> Value {
    json!({
        "protocolVersion": version,
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "script", "version": "1"},
    })
}

/// A tool result with one text.
pub(super) fn said(text: &str) -> Value {
    json!({"resultType": "complete", "content": [{"type": "text", "text": text}]})
}

/// A peer on a pipe. The function gets each line and returns the lines to send.
pub(super) fn pipe<F>(mut answer: F) -> (Target, Arc<Mutex<Vec<String>>>)
where
    F: FnMut(&Value) -> Vec<String> + Send + 'static,
{
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (input, output) = tokio::io::split(ours);
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let noted = Arc::clone(&seen);
    tokio::spawn(async move {
        let (theirs_in, mut theirs_out) = tokio::io::split(theirs);
        let mut lines = BufReader::new(theirs_in).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            noted.lock().unwrap().push(line.clone());
            for answer in answer(&serde_json::from_str(&line).unwrap()) {
                if theirs_out.write_all(format!("{answer}\n").as_bytes()).await.is_err() {
                    return;
                }
            }
        }
    });
    (Target::stream(input, output), seen)
}

/// A response line with a result.
pub(super) fn line(request: &Value, result: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": request["id"], "result": result}).to_string()
}

/// A request line from the server.
pub(super) fn ask(id: &str, method: &str, params: Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
}
