//! `cargo xtask site`: builds the site from the project's pages and checks it in a browser.
//!
//! `site/nav.json` has the pages and their order. `pages` reads them, `links` rewrites and checks their links, `command`
//! runs the generator (VitePress) on them and opens each page in a browser.

mod command;
mod links;
mod pages;

pub(crate) use command::run;
