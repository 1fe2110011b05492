//! A browser with cookies, which follows redirects and submits forms.

use std::collections::HashMap;

use outlive::auth::fetch::form;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// Redirect URI of a program on the user's machine. No server listens there.
pub(crate) const PROGRAM: &str = "http://127.0.0.1:9/callback";

/// A browser.
#[derive(Clone, Debug, Default)]
pub(crate) struct Browser {
    /// Values of cookies, by host and name.
    cookies: HashMap<(String, String), String>,
}

/// A page, or the address of a program to which the browser was redirected.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) url: String,
    pub(crate) status: u16,
    pub(crate) body: String,
}

impl Browser {
    /// Opens an address, and follows redirects.
    pub(crate) async fn open(&mut self, url: &str) -> Page {
        self.load("GET", url.to_owned(), "").await
    }

    /// Submits the form of a page with a decision, and follows redirects.
    pub(crate) async fn submit(&mut self, page: &Page, decision: &str) -> Page {
        let between = |start: &str| {
            let (_, rest) = page.body.split_once(start).unwrap_or_else(|| panic!("{page:?}"));
            rest.split_once('"').unwrap().0.replace("&amp;", "&")
        };
        let host_end = page.url[7..].find('/').map_or(page.url.len(), |at| at + 7);
        let url = format!("{}{}", &page.url[..host_end], between("action=\""));
        let request = between("name=\"request\" value=\"");
        let form = form::encode([("request", request.as_str()), ("decision", decision)]);
        self.load("POST", url, &form).await
    }

    async fn load(&mut self, verb: &str, url: String, form: &str) -> Page {
        let (mut verb, mut url, mut form) = (verb, url, form);
        for _ in 0..10 {
            if url.starts_with(PROGRAM) {
                return Page { url, status: 0, body: String::new() };
            }
            let (status, location, body) = self.send(verb, &url, form).await;
            match location {
                Some(location) => (verb, url, form) = ("GET", location, ""),
                None => return Page { url, status, body },
            }
        }
        panic!("too many redirects to {url}");
    }

    async fn send(&mut self, verb: &str, url: &str, form: &str) -> (u16, Option<String>, String) {
        let rest = url.strip_prefix("http://").unwrap_or_else(|| panic!("{url}"));
        let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let own = self.cookies.iter().filter(|((at, _), _)| at == host);
        let own: Vec<String> = own.map(|((_, name), value)| format!("{name}={value}")).collect();
        let head = format!(
            "{verb} {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncookie: {}\r\n\
             content-type: application/x-www-form-urlencoded\r\ncontent-length: {}\r\n\r\n{form}",
            own.join("; "),
            form.len()
        );
        let mut stream = TcpStream::connect(host).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).await.unwrap();
        let (head, body) = reply.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{reply}"));
        let mut lines = head.split("\r\n");
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let mut location = None;
        for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
            if name.eq_ignore_ascii_case("location") {
                location = Some(value.to_owned());
            }
            if name.eq_ignore_ascii_case("set-cookie") {
                let (name, rest) = value.split_once('=').unwrap();
                let value = rest.split(';').next().unwrap().to_owned();
                self.cookies.insert((host.to_owned(), name.to_owned()), value);
            }
        }
        (status, location, body.to_owned())
    }
}
