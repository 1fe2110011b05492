//! A test browser with cookies and redirects.

use std::collections::HashMap;

use outlive_auth::{
    client::{Login, OAuthError, PendingLogin, RedirectParams},
    fetch::form,
};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::support::LOOPBACK;

/// Returns a parameter of a URL.
pub(crate) fn asked(url: &str, name: &str) -> Option<String> {
    let query = url.split_once('?')?.1;
    form::decode(query).into_iter().find(|(known, _)| known == name).map(|(_, value)| value)
}

/// A received response.
#[derive(Clone, Debug)]
pub(crate) struct Got {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Got {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn location(&self) -> &str {
        self.header("location").unwrap_or_else(|| panic!("{self:?}"))
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("{self:?}"))
    }

    pub(crate) fn text(&self, member: &str) -> String {
        self.json()[member].as_str().unwrap_or_else(|| panic!("{self:?}")).to_owned()
    }

    /// Returns the URL of the link on a page.
    pub(crate) fn link(&self) -> String {
        let (_, rest) = self.body.split_once("href=\"").unwrap_or_else(|| panic!("{self:?}"));
        rest.split_once('"').unwrap().0.replace("&amp;", "&")
    }

    /// Returns the sealed request in the form of a page.
    pub(crate) fn form(&self) -> String {
        let (_, rest) = self.body.split_once("name=\"request\" value=\"").unwrap();
        rest.split_once('"').unwrap().0.to_owned()
    }
}

/// A browser that stores cookies by host and port.
#[derive(Clone, Debug, Default)]
pub(crate) struct Browser {
    pub(crate) cookies: HashMap<(String, String), String>,
    /// All received responses.
    pub(crate) seen: Vec<Got>,
}

impl Browser {
    pub(crate) async fn get(&mut self, url: &str) -> Got {
        self.send("GET", url, "", &[]).await
    }

    pub(crate) async fn post(&mut self, url: &str, form: &str) -> Got {
        let kind = ("content-type", "application/x-www-form-urlencoded");
        self.send("POST", url, form, &[kind]).await
    }

    pub(crate) async fn post_json(&mut self, url: &str, body: &Value) -> Got {
        self.send("POST", url, &body.to_string(), &[("content-type", "application/json")]).await
    }

    pub(crate) async fn send(
        &mut self,
        verb: &str,
        url: &str,
        body: &str,
        headers: &[(&str, &str)],
    ) -> Got {
        let rest = url.strip_prefix("http://").unwrap();
        let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let mut head = format!(
            "{verb} {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-length: {}\r\n",
            body.len()
        );
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        let ours = self.cookies.iter().filter(|((at, _), _)| at == host);
        let ours: Vec<String> = ours.map(|((_, name), value)| format!("{name}={value}")).collect();
        if !ours.is_empty() {
            head.push_str(&format!("cookie: {}\r\n", ours.join("; ")));
        }
        let mut stream = TcpStream::connect(host).await.unwrap();
        stream.write_all(format!("{head}\r\n{body}").as_bytes()).await.unwrap();
        let mut reply = Vec::new();
        // A server that does not read the whole request may close the connection early.
        let _ = stream.read_to_end(&mut reply).await;
        let reply = String::from_utf8(reply).unwrap();
        let (head, body) = reply.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{reply:?}"));
        let mut lines = head.split("\r\n");
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let headers: Vec<(String, String)> = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let got = Got { status, headers, body: body.to_owned() };
        for (name, value) in &got.headers {
            if name.eq_ignore_ascii_case("set-cookie") {
                let (name, rest) = value.split_once('=').unwrap();
                let key = (host.to_owned(), name.to_owned());
                match value.contains("Max-Age=0;") {
                    true => drop(self.cookies.remove(&key)),
                    false => {
                        let value = rest.split(';').next().unwrap().to_owned();
                        self.cookies.insert(key, value);
                    }
                }
            }
        }
        self.seen.push(got.clone());
        got
    }

    /// Submits the consent page with a decision.
    pub(crate) async fn decide(&mut self, base: &str, page: &Got, decision: &str) -> Got {
        let form = form::encode([("request", page.form().as_str()), ("decision", decision)]);
        self.post(&format!("{base}/consent"), &form).await
    }

    /// Follows redirects until one leads to the client, and consents when asked.
    pub(crate) async fn log_in(&mut self, url: &str) -> String {
        let mut url = url.to_owned();
        for _ in 0..5 {
            let mut got = self.get(&url).await;
            if got.status == 200 {
                let base = url.split_once("/authorize").unwrap().0.to_owned();
                got = self.decide(&base, &got, "allow").await;
            }
            url = got.location().to_owned();
            if !url.starts_with("http://127.0.0.1:") || url.starts_with(LOOPBACK) {
                return url;
            }
        }
        panic!("too many redirects: {url}");
    }
}

/// A login with a separate browser.
#[derive(Clone, Default)]
pub(crate) struct Person;

impl Login for Person {
    async fn prepare(&self, _: Option<&str>) -> Result<PendingLogin, OAuthError> {
        Ok(PendingLogin::new(LOOPBACK, move |page| async move {
            Ok(RedirectParams::from_url(&Browser::default().log_in(&page).await))
        }))
    }
}
