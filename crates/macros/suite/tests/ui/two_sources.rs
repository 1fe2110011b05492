//! Arguments are deserialized once, into one type.

use outlive::{server, tool};

struct Query;

fn main() {
    let _ = server::Server::builder("search", "1.0.0").tool(search::tool()).tool(find::tool()).tool(index::tool());
}

#[tool]
async fn search(args: Query, limit: u32) -> String {
    limit.to_string()
}

#[tool]
async fn find(limit: u32, server::Args(query): server::Args<Query>) -> String {
    limit.to_string()
}

#[tool]
async fn index(#[validate(length(min = 1))] text: String, #[header("Region")] args: Query) -> String {
    text
}
