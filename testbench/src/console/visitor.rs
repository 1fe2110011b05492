//! The HTTP client of a person: pages with a session, or the API with a token.

use std::io::{self, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use socket2::{Domain, Socket, Type};

use crate::crash::http::Response;

/// Path of the API.
pub(super) const API: &str = "/console/api/v1";
/// Wire key of an approval request, in a path.
pub(super) const APPROVAL: &str = "%23approval";

const TIMEOUT: Duration = Duration::from_secs(30);
/// Average interval of the changes that the server admits per person.
const PAUSE: Duration = Duration::from_millis(100);

/// A person at one server.
#[derive(Clone, Debug)]
pub(super) struct Visitor {
    server: SocketAddr,
    credential: Credential,
    /// Address of the visitor's machine. Sign-ins are limited by address.
    from: Ipv4Addr,
}

#[derive(Clone, Debug)]
enum Credential {
    Nothing,
    Token(String),
    /// Value of the session cookie.
    Session(String),
}

/// A response without its date.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: String,
}

impl Visitor {
    pub(super) fn anonymous(server: SocketAddr) -> Self {
        Self { server, credential: Credential::Nothing, from: Ipv4Addr::LOCALHOST }
    }

    /// A visitor of the API.
    pub(super) fn with_token(server: SocketAddr, token: &str) -> Self {
        Self { credential: Credential::Token(token.to_owned()), ..Self::anonymous(server) }
    }

    /// A visitor with a session, as after [`Visitor::sign_in`].
    pub(super) fn with_session(server: SocketAddr, session: &str) -> Self {
        Self { credential: Credential::Session(session.to_owned()), ..Self::anonymous(server) }
    }

    /// Signs in with a token, from an address that no other sign-in uses.
    pub(super) fn sign_in(server: SocketAddr, token: &str) -> Result<Self> {
        let reply = Self::try_sign_in(server, token)?;
        let session = reply.cookie("outlive").with_context(|| {
            format!("the sign-in was rejected with {}: {}", reply.status, reply.body)
        })?;
        Ok(Self::with_session(server, &session))
    }

    /// Sends the form of the sign-in page and returns the response.
    pub(super) fn try_sign_in(server: SocketAddr, token: &str) -> Result<Reply> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let [.., high, low] = number.to_be_bytes();
        let from = Ipv4Addr::new(127, 1, high, low.max(1));
        let browser = Self { from, ..Self::anonymous(server) };
        let page = browser.get("/console/in")?;
        let cookie = page.cookie("outlive-in").context("the sign-in page sets no cookie")?;
        let form_token = page.field("form_token").context("the sign-in page has no form")?;
        let cookie = format!("outlive-in={cookie}");
        let headers = [("Cookie", cookie.as_str()), SAME_ORIGIN, FORM];
        let body = form(&[("form_token", &form_token), ("token", token)]);
        Ok(browser.request("POST", "/console/in", &headers, &body)?)
    }

    /// The same credential on another machine.
    pub(super) fn at_address(&self, from: Ipv4Addr) -> Self {
        Self { from, ..self.clone() }
    }

    pub(super) fn server(&self) -> SocketAddr {
        self.server
    }

    /// The session cookie, for a browser.
    pub(super) fn session(&self) -> Option<&str> {
        match &self.credential {
            Credential::Session(session) => Some(session),
            _ => None,
        }
    }

    pub(super) fn get(&self, path: &str) -> io::Result<Reply> {
        self.request("GET", path, &[], "")
    }

    /// Reads an object of the API.
    pub(super) fn read(&self, path: &str) -> Result<Value> {
        let reply = self.get(&format!("{API}/{path}"))?;
        ensure!(reply.status == 200, "{path} returned {}: {}", reply.status, reply.body);
        Ok(serde_json::from_str(&reply.body)?)
    }

    /// Sends a JSON object to the API. Waits while the visitor sends too many changes.
    pub(super) fn post(&self, path: &str, body: &Value) -> io::Result<Reply> {
        let (path, json) = (format!("{API}/{path}"), ("Content-Type", "application/json"));
        loop {
            let reply = self.request("POST", &path, &[json], &body.to_string())?;
            if reply.status != 429 {
                return Ok(reply);
            }
            thread::sleep(PAUSE);
        }
    }

    /// Submits a form of a page with a session.
    pub(super) fn submit(&self, path: &str, fields: &[(&str, &str)]) -> io::Result<Reply> {
        self.request("POST", path, &[SAME_ORIGIN, FORM], &form(fields))
    }

    /// Votes on an approval request that was read with [`Visitor::read`].
    pub(super) fn vote(&self, request: &Value, accepts: bool) -> io::Result<Reply> {
        let (task, key) = (text(&request["task"]), text(&request["key"]));
        let mut answer = json!({"digest": request["digest"], "action": "accept"});
        if !accepts {
            answer["action"] = json!("decline");
            answer["reason"] = json!("not now");
        }
        self.post(&format!("inputs/{task}/{}/answer", encode(key)), &answer)
    }

    /// Sends a request on a new connection.
    pub(super) fn request(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> io::Result<Reply> {
        let mut response = self.open(method, path, headers, body)?;
        let headers = response.headers().iter().filter(|(name, _)| name != "date").cloned();
        let (status, headers) = (response.status, headers.collect());
        let body = if method == "HEAD" { String::new() } else { response.text()? };
        Ok(Reply { status, headers, body })
    }

    /// Sends a request and reads the head of its response, which may be a stream.
    pub(super) fn open(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> io::Result<Response> {
        let mut stream = self.connect()?;
        let mut request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Length: {}\r\n",
            self.server,
            body.len()
        );
        match &self.credential {
            Credential::Nothing => {}
            Credential::Token(token) => {
                request.push_str(&format!("Authorization: Bearer {token}\r\n"));
            }
            Credential::Session(session) => {
                request.push_str(&format!("Cookie: outlive={session}\r\n"));
            }
        }
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        request.push_str("\r\n");
        request.push_str(body);
        stream.write_all(request.as_bytes())?;
        Response::read(BufReader::new(stream))
    }

    fn connect(&self) -> io::Result<TcpStream> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        socket.bind(&SocketAddr::from((self.from, 0)).into())?;
        socket.connect_timeout(&self.server.into(), TIMEOUT)?;
        let stream = TcpStream::from(socket);
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        Ok(stream)
    }
}

/// Headers of a form that a page of the console submits.
pub(super) const SAME_ORIGIN: (&str, &str) = ("Sec-Fetch-Site", "same-origin");
pub(super) const FORM: (&str, &str) = ("Content-Type", "application/x-www-form-urlencoded");

impl Reply {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Returns the value of a cookie that the response sets.
    pub(super) fn cookie(&self, name: &str) -> Option<String> {
        let set = self.headers.iter().filter(|(header, _)| header == "set-cookie");
        let mut values = set.filter_map(|(_, cookie)| {
            let (known, rest) = cookie.split_once('=')?;
            let value = rest.split(';').next()?;
            (known == name && !value.is_empty()).then(|| value.to_owned())
        });
        values.next()
    }

    /// Returns the value of the first hidden field with this name.
    pub(super) fn field(&self, name: &str) -> Option<String> {
        let (_, rest) = self.body.split_once(&format!("name=\"{name}\" value=\""))?;
        rest.split('"').next().map(str::to_owned)
    }

    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }
}

/// Percent-encodes a segment of a path or a value of a form.
pub(super) fn encode(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                encoded.push(char::from(byte));
            }
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

/// Encodes the fields of a form.
pub(super) fn form(fields: &[(&str, &str)]) -> String {
    let pairs = fields.iter().map(|(name, value)| format!("{}={}", encode(name), encode(value)));
    pairs.collect::<Vec<_>>().join("&")
}

/// The text of a JSON string; empty for another value.
pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Returns an argument of a call that the API shows.
pub(super) fn argument<'v>(request: &'v Value, name: &str) -> &'v str {
    let arguments = request["arguments"].as_array().map(Vec::as_slice).unwrap_or_default();
    arguments.iter().find(|it| it["name"] == name).map_or("", |it| text(&it["value"]))
}

#[cfg(test)]
mod tests {
    use super::{Reply, argument, encode, form, json};

    #[test]
    fn form_fields_are_percent_encoded() {
        assert_eq!(encode("#approval"), "%23approval");
        assert_eq!(form(&[("a", "b c"), ("d", "&")]), "a=b%20c&d=%26");
    }

    #[test]
    fn reply_has_cookies_and_hidden_fields() {
        let cookie = |text: &str| ("set-cookie".to_owned(), text.to_owned());
        let reply = Reply {
            status: 200,
            headers: vec![cookie("outlive-in=; Max-Age=0"), cookie("outlive=x1; Path=/")],
            body: r#"<input type="hidden" name="form_token" value="t-1">"#.to_owned(),
        };
        assert_eq!(reply.cookie("outlive").as_deref(), Some("x1"));
        assert_eq!(reply.cookie("outlive-in"), None);
        assert_eq!(reply.field("form_token").as_deref(), Some("t-1"));
    }

    #[test]
    fn argument_of_request_is_found_by_name() {
        let request = json!({"arguments": [{"name": "key", "value": "k-1"}]});
        assert_eq!(argument(&request, "key"), "k-1");
        assert_eq!(argument(&request, "other"), "");
    }
}
