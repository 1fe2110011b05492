//! A resource with a fixed URI cannot fill arguments.

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
