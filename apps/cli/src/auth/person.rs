//! Whoever sits in front of this program logs in: in the browser of this machine, or in one elsewhere
//! whose last address is pasted here.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use outlive::auth::client::{Login, LoopbackLogin, ManualLogin, OAuthError, PendingLogin};

use super::browser::Browser;
use crate::{
    call::{link, screen::Screen},
    print,
};

/// The user of this program.
#[derive(Clone)]
pub(crate) struct Person {
    server: String,
    screen: Arc<Screen>,
    browser: Option<Browser>,
    port: Option<u16>,
    has_begun: Arc<AtomicBool>,
}

impl Person {
    /// Somebody who logs in to this server, in the browser if there is one.
    pub(crate) fn new(server: &str, screen: &Arc<Screen>) -> Self {
        Self {
            server: server.to_owned(),
            screen: Arc::clone(screen),
            browser: Browser::find(),
            port: None,
            has_begun: Arc::default(),
        }
    }

    /// There is no browser, whatever the environment says.
    pub(super) fn without_browser(mut self) -> Self {
        self.browser = None;
        self
    }

    /// The port of this machine that the browser comes back to.
    pub(crate) fn port(mut self, port: Option<u16>) -> Self {
        self.port = port;
        self
    }

    /// Whether a page was shown.
    pub(super) fn has_begun(&self) -> bool {
        self.has_begun.load(Ordering::Relaxed)
    }

    /// Opens the page here.
    fn open(&self, browser: &Browser, url: &str) {
        self.has_begun.store(true, Ordering::Relaxed);
        let server = &self.server;
        self.screen.talk(&match browser.open(url) {
            true => format!(
                "Your browser opens, so that you can log in to {server}. If it does not, open this page in it:\n\n{}\n",
                link::shown(url)
            ),
            false => format!(
                "No browser could be started. To log in to {server}, open this page on this machine (or leave, and use `outlive login --no-browser {server}`):\n\n{}\n",
                link::shown(url)
            ),
        });
    }

    /// Shows the page, and reads what comes of it.
    async fn ask(self, url: String) -> io::Result<String> {
        self.has_begun.store(true, Ordering::Relaxed);
        self.screen.talk(&format!(
            "To log in to {}, open this page in a browser:\n\n{}\n\nIt ends at an address of 127.0.0.1 that may not load. Paste that address here, or the code that the page shows.",
            self.server,
            link::shown(&url)
        ));
        let asked = tokio::task::spawn_blocking(move || {
            self.screen.hold();
            let mut line = String::new();
            let read = print::prompt("> ").and_then(|()| io::stdin().read_line(&mut line));
            self.screen.release();
            read.map(|_| line)
        });
        asked.await.map_err(io::Error::other)?
    }
}

impl Login for Person {
    async fn prepare(&self, registered: Option<&str>) -> Result<PendingLogin, OAuthError> {
        let person = self.clone();
        match self.browser.clone() {
            Some(browser) => {
                let mut login = LoopbackLogin::new().without_browser();
                if let Some(port) = self.port {
                    login = login.port(port);
                }
                login.on_url(move |url| person.open(&browser, url)).prepare(registered).await
            }
            None => {
                let login = ManualLogin::new(move |url| person.clone().ask(url));
                // The address that is known already will do: nobody has to come back to it.
                let known = self.port.map(|port| format!("http://127.0.0.1:{port}/callback"));
                match known.as_deref().or(registered) {
                    Some(known) => login.redirect_uri(known).prepare(registered).await,
                    None => login.prepare(registered).await,
                }
            }
        }
    }
}
