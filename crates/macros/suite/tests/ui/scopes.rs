//! Scopes are one or more names in parentheses.

use outlive::{prompt, resource, tool};

#[tool(scopes)]
async fn nothing() -> &'static str {
    "nothing"
}

#[tool(scopes = "files:read")]
async fn equals() -> &'static str {
    "equals"
}

#[prompt(scopes())]
async fn empty() -> &'static str {
    "empty"
}

#[resource("config://app", scopes("files:read files:write"))]
async fn spaces() -> &'static str {
    "spaces"
}

#[tool(scopes("files:read", 7, ""))]
async fn number() -> &'static str {
    "number"
}

#[tool(scopes("files:read"), scopes("files:write"), title("Wipe"))]
async fn twice() -> &'static str {
    "twice"
}

fn main() {
    let _ = (nothing::tool(), equals::tool(), empty::prompt(), spaces::resource(), number::tool(), twice::tool());
}
