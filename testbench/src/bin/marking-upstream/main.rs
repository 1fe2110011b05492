//! An MCP server that gives the same IDs, states, URIs and sessions to all clients:
//! `marking-upstream (legacy | tasks | modern | http PORT_FILE)`.
//!
//! Callers put a mark into their arguments, and every result has the mark of its call. `http` is one
//! process for all callers; the others are on stdio. It has no SDK, because an SDK chooses IDs that
//! differ.

mod http;
mod messages;
mod stdio;

fn main() -> std::io::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["legacy"] => stdio::serve(stdio::Kind::Legacy),
        ["tasks"] => stdio::serve(stdio::Kind::Tasks),
        ["modern"] => stdio::serve(stdio::Kind::Modern),
        ["http", file] => http::serve(file),
        _ => Err(std::io::Error::other("name `legacy`, `tasks`, `modern` or `http FILE`")),
    }
}
