//! The browser of this machine, if the user can see its screen.

use std::{env, process::Stdio};

use tokio::process::Command;

/// Commands that open a page. The first one that starts is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Browser {
    commands: Vec<Vec<String>>,
}

impl Browser {
    /// Returns the browser of `BROWSER`, else the system's default. Returns `None` if no display is
    /// available.
    pub(crate) fn find() -> Option<Self> {
        Self::find_in(|name| env::var(name).ok().filter(|value| !value.trim().is_empty()))
    }

    fn find_in(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        if let Some(chosen) = variable("BROWSER") {
            let words = |command: &str| -> Vec<String> {
                command.split_whitespace().map(str::to_owned).collect()
            };
            let commands = chosen.split(':').map(words).filter(|words| !words.is_empty());
            return Some(Self { commands: commands.collect() });
        }
        let is_elsewhere = variable("SSH_CONNECTION").is_some();
        let command: &[&str] = if cfg!(target_os = "macos") {
            (!is_elsewhere).then_some(&["open"])?
        } else if cfg!(windows) {
            (!is_elsewhere).then_some(&["rundll32", "url.dll,FileProtocolHandler"])?
        } else {
            variable("DISPLAY").or_else(|| variable("WAYLAND_DISPLAY"))?;
            &["xdg-open"]
        };
        Some(Self { commands: vec![command.iter().map(|word| (*word).to_owned()).collect()] })
    }

    /// Opens a page. Returns whether a command started. No shell interprets the URL.
    pub(crate) fn open(&self, url: &str) -> bool {
        self.commands.iter().any(|command| {
            let mut words = with_page(command, url).into_iter();
            let Some(program) = words.next() else { return false };
            let started = Command::new(program)
                .args(words)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn();
            started.is_ok()
        })
    }
}

/// Replaces `%s` with the URL. Appends the URL if the command has no `%s`.
fn with_page(command: &[String], url: &str) -> Vec<String> {
    let mut words: Vec<String> = command.iter().map(|word| word.replace("%s", url)).collect();
    if !command.iter().any(|word| word.contains("%s")) {
        words.push(url.to_owned());
    }
    words
}

#[cfg(test)]
mod tests {
    use super::{Browser, with_page};

    fn found(variables: &[(&str, &str)]) -> Option<Browser> {
        Browser::find_in(|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn browser_variable_with_two_commands_keeps_their_order() {
        let browser = found(&[("BROWSER", "firefox --new-tab %s:w3m"), ("DISPLAY", ":0")]).unwrap();
        assert_eq!(browser.commands, [vec!["firefox", "--new-tab", "%s"], vec!["w3m"]]);
        assert_eq!(with_page(&browser.commands[0], "u"), ["firefox", "--new-tab", "u"]);
        assert_eq!(with_page(&browser.commands[1], "u"), ["w3m", "u"]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn browser_without_display_is_not_found() {
        assert_eq!(found(&[]), None);
        assert!(found(&[("WAYLAND_DISPLAY", "wayland-0")]).is_some());
    }

    #[test]
    fn browser_open_with_missing_commands_returns_false() {
        let browser = found(&[("BROWSER", "/no/such/browser:/nor/this/one")]).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        assert!(!runtime.block_on(async { browser.open("http://127.0.0.1/") }));
    }
}
