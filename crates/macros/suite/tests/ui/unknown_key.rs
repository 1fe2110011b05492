//! The error suggests the nearest key and lists all keys.

use outlive::{prompt, resource, tool};

#[tool(titel = "Addition", readonly)]
async fn add(a: i64, b: i64) -> String {
    (a + b).to_string()
}

#[resource("config://app", mime = "text/plain")]
async fn config() -> &'static str {
    "debug = false"
}

#[prompt(read_only)]
async fn greet() -> &'static str {
    "Say hello"
}

fn main() {
    // The generated functions exist in spite of the invalid keys.
    let _ = (add::tool().max_concurrent(1), config::resource().size(13), greet::prompt());
}
