//! `cargo xtask console`: approvals and the pages for people, with real servers and a real browser.
//!
//! Each campaign starts `outlive serve` on SQLite or, with three replicas, on PostgreSQL, and measures some rows of the
//! report. A row has a figure and a bar; a row that misses its bar fails the command. `site` has the processes,
//! `visitor` the HTTP client of a person, and `packages` the scripts in `conformance/console`, which drive Chromium and
//! receive webhooks.

mod answer_page;
mod asking_server;
mod attacks;
mod bench;
mod command;
mod cost;
mod deliveries;
mod gate;
mod histories;
mod latency;
mod lists;
mod lookups;
mod oauth;
mod packages;
mod people;
mod pictures;
mod screens;
mod script;
mod sealed;
mod site;
mod sizes;
mod statements;
mod terminal;
mod tokens;
mod unavailable;
mod visitor;

pub(crate) use command::run;
