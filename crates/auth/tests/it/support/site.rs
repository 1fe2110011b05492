//! A scripted web server.

use std::sync::{Arc, Mutex};

use outlive_auth::fetch::form;
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// A received request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// Returns a parameter of the query.
    pub(crate) fn asks(&self, name: &str) -> Option<String> {
        lookup(&self.query, name)
    }

    /// Returns a field of the form.
    pub(crate) fn field(&self, name: &str) -> Option<String> {
        lookup(&self.body, name)
    }
}

fn lookup(text: &str, name: &str) -> Option<String> {
    form::decode(text).into_iter().find(|(known, _)| known == name).map(|(_, value)| value)
}

/// A scripted response.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Value,
}

pub(crate) fn answer(status: u16, body: Value) -> Answer {
    Answer { status, headers: Vec::new(), body }
}

impl Answer {
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

/// A web server whose responses a function returns.
pub(crate) struct Site {
    pub(crate) url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Site {
    pub(crate) async fn start(
        serve: impl Fn(&str, &Seen) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (base, noted, serve) = (url.clone(), Arc::clone(&seen), Arc::new(serve));
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (base, noted, serve) = (base.clone(), Arc::clone(&noted), Arc::clone(&serve));
                tokio::spawn(async move {
                    let Some(request) = read(&mut stream).await else { return };
                    noted.lock().unwrap().push(request.clone());
                    let answer = serve(&base, &request);
                    write(&mut stream, &answer).await;
                });
            }
        });
        Self { url, seen }
    }

    /// Returns all received requests as `GET /path`.
    pub(crate) fn lines(&self) -> Vec<String> {
        let seen = self.seen.lock().unwrap();
        seen.iter().map(|seen| format!("{} {}", seen.method, seen.path)).collect()
    }

    /// Returns all received requests for a path.
    pub(crate) fn all(&self, path: &str) -> Vec<Seen> {
        self.seen.lock().unwrap().iter().filter(|seen| seen.path == path).cloned().collect()
    }
}

async fn read(stream: &mut TcpStream) -> Option<Seen> {
    let mut bytes = Vec::new();
    let head = loop {
        if let Some(at) = bytes.windows(4).position(|it| it == b"\r\n\r\n") {
            break at;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let text = String::from_utf8(bytes[..head].to_vec()).ok()?;
    let mut lines = text.split("\r\n");
    let mut words = lines.next()?.split(' ');
    let (method, target) = (words.next()?.to_owned(), words.next()?);
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
        .collect();
    let mut seen = Seen {
        method,
        path: path.to_owned(),
        query: query.to_owned(),
        headers,
        body: String::new(),
    };
    let length: usize = seen.header("content-length").map_or(0, |it| it.parse().unwrap());
    while bytes.len() < head + 4 + length {
        stream.read_buf(&mut bytes).await.ok()?;
    }
    seen.body = String::from_utf8_lossy(&bytes[head + 4..]).into_owned();
    Some(seen)
}

async fn write(stream: &mut TcpStream, answer: &Answer) {
    let body = if answer.body.is_null() { String::new() } else { answer.body.to_string() };
    let mut head = format!(
        "HTTP/1.1 {} X\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n",
        answer.status,
        body.len()
    );
    for (name, value) in &answer.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    let _ = stream.write_all(format!("{head}\r\n{body}").as_bytes()).await;
}
