//! `cargo xtask site`: builds the site from the project's pages and checks it in a browser.
//!
//! `site/nav.json` has the pages and their order. `pages` reads them, `links` rewrites and checks their links, `command`
//! has the generator (VitePress) build them and a browser look at each page.

mod command;
mod links;
mod pages;

pub(crate) use command::run;
