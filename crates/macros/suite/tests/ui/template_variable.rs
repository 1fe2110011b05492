//! Parameters that are not variables of the template are rejected.

use outlive::resource;

#[resource("users://{id}{?fields*,limit:3}")]
async fn user(id: u64, fields: String, limit: String, name: String) -> String {
    format!("{id}{fields}{limit}{name}")
}

#[resource("users://{id")]
async fn unclosed(id: u64) -> String {
    id.to_string()
}

fn main() {}
