//! A single URI has nothing to fill parameters from.

use outlive::{resource, server::Cx};

#[resource("config://app")]
async fn config(cx: Cx, section: String) -> String {
    drop(cx);
    section
}

#[resource]
async fn nowhere() -> &'static str {
    ""
}

fn main() {}
