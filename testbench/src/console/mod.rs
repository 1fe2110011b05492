//! `cargo xtask console`: the pages for people in a real browser.
//!
//! `server` is a server whose tools request input. `command` has Chromium open the answer page in light and dark, on a
//! desktop and on a narrow phone, fill in its form with the keyboard, and run axe-core on every state. The script is
//! `site/answer.mjs`, because the packages of the site have browser and axe-core.

mod command;
mod server;

pub(crate) use command::run;
