//! Pages for people who act outside an MCP client.
//!
//! [`Console`] serves the answer page: the form behind an answer link. A person opens the link, reads
//! the exact call, and responds to its input request without signing in.
//!
//! ```
//! use outlive::server::{Server, http::HttpConfig};
//! use outlive_console::Console;
//!
//! let server = Server::builder("shop", "1.0.0").build()?;
//! let http = HttpConfig::new().routes(Console::new(&server));
//! # Ok::<(), outlive::server::BuildError>(())
//! ```
//!
//! `console` is the index of the paths, `pages` has one file per page, `form` converts an elicitation
//! form to HTML and back, and `html` has the parts of every page. Pages have no script, no cookie and
//! no resource of another origin.

mod arguments;
mod console;
mod form;
mod html;
mod pages;
mod urlencoded;

pub use console::Console;
