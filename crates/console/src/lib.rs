//! Pages for people who act outside an MCP client: the console of a server and its answer page.
//!
//! On the console, people see their tasks and input requests, approve and answer. Operators also see
//! the tasks of all callers, and cancel, retry and repeat them. Behind an answer link, a person
//! responds to one input request without signing in.
//!
//! ```
//! use std::sync::Arc;
//!
//! use outlive::{
//!     server::{Server, http::HttpConfig, tasks::TaskConfig},
//!     store::MemoryStore,
//! };
//! use outlive_console::Console;
//!
//! let tasks = TaskConfig::people(Arc::new(MemoryStore::new()));
//! let server = Server::builder("shop", "1.0.0").tasks(tasks).build()?;
//! let http = HttpConfig::new().routes(Console::new(&server).operator("ada").build()?);
//! # Ok::<(), outlive::server::BuildError>(())
//! ```
//!
//! # Layout
//!
//! - `console`: the index of all paths; `builder`: the settings.
//! - `sign_in`: one-time links, tokens, OAuth, sessions, roles and form tokens.
//! - `handlers`: one file per page, which reads its data; `pages`: its HTML; `draw`: charts.
//! - `api`: one file per group of endpoints; `live`: hints for live updates.
//! - `http`, `request`, `cookies`, `rate_limit`: requests and responses of browsers.

mod api;
mod arguments;
mod assets;
mod builder;
mod console;
mod cookies;
mod draw;
mod form;
mod handlers;
mod html;
mod http;
mod live;
mod pages;
mod rate_limit;
mod request;
mod sign_in;
mod state;
mod status_text;
mod style;
mod task_query;
mod time_text;
mod times;
mod urlencoded;

pub use builder::ConsoleBuilder;
pub use console::Console;
pub use sign_in::{link::sign_in_key, oauth::OAuthLogin};
