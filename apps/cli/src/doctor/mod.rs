//! `outlive doctor`: checks what the program needs, and says what to do.
//!
//! - `folder`: the data folder, and sockets in it. `store`: where tasks are kept. `port`: where is
//!   listened. `files`: outlive.toml, tokens, keys. `auth`: issuers of tokens. `machine`: clock, locale, terminal.

mod args;
mod auth;
mod command;
mod files;
mod finding;
mod folder;
mod machine;
mod plan;
mod port;
mod store;

pub(crate) use args::Args;
pub(crate) use command::run;
pub(crate) use finding::Finding;
use plan::Plan;
