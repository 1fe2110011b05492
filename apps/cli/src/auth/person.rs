//! Interactive login: in the browser of this machine, or in a browser on another machine whose
//! final URL the user pastes here.

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

/// The user of the program, who logs in.
#[derive(Clone)]
pub(crate) struct Person {
    server: String,
    screen: Arc<Screen>,
    browser: Option<Browser>,
    port: Option<u16>,
    has_begun: Arc<AtomicBool>,
}

impl Person {
    /// Creates a login to `server` that opens the browser, if there is one.
    pub(crate) fn new(server: &str, screen: &Arc<Screen>) -> Self {
        Self {
            server: server.to_owned(),
            screen: Arc::clone(screen),
            browser: Browser::find(),
            port: None,
            has_begun: Arc::default(),
        }
    }

    /// Disables the browser, regardless of the environment.
    pub(super) fn without_browser(mut self) -> Self {
        self.browser = None;
        self
    }

    /// Sets the port on this machine that the authorization server redirects the browser to.
    pub(crate) fn port(mut self, port: Option<u16>) -> Self {
        self.port = port;
        self
    }

    /// Returns whether the user was shown a login page.
    pub(super) fn has_begun(&self) -> bool {
        self.has_begun.load(Ordering::Relaxed)
    }

    /// Opens the login page in the browser of this machine.
    fn open(&self, browser: &Browser, url: &str) {
        self.has_begun.store(true, Ordering::Relaxed);
        let server = &self.server;
        self.screen.talk(&match browser.open(url) {
            true => format!(
                "Opening your browser to log in to {server}. If it does not open, visit this page:\n\n{}\n",
                link::shown(url)
            ),
            false => format!(
                "Cannot start a browser. To log in to {server}, open this page on this machine (or press Ctrl-C and run `outlive login --no-browser {server}`):\n\n{}\n",
                link::shown(url)
            ),
        });
    }

    /// Shows the URL of the login page, and reads the final URL or code that the user pastes.
    async fn ask(self, url: String) -> io::Result<String> {
        self.has_begun.store(true, Ordering::Relaxed);
        self.screen.talk(&format!(
            "To log in to {}, open this page in a browser:\n\n{}\n\nAfter the login, the browser goes to a URL at 127.0.0.1, which may not load. Paste that URL here, or the code that the page shows.",
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
                // No server listens at this redirect URI: the user pastes the final URL.
                let known = self.port.map(|port| format!("http://127.0.0.1:{port}/callback"));
                match known.as_deref().or(registered) {
                    Some(known) => login.redirect_uri(known).prepare(registered).await,
                    None => login.prepare(registered).await,
                }
            }
        }
    }
}
