//! Arguments are read once, into one type.

use outlive::{server::Args, tool};

struct Query;

#[tool]
async fn search(args: Query, limit: u32) -> String {
    limit.to_string()
}

#[tool]
async fn find(limit: u32, Args(query): Args<Query>) -> String {
    limit.to_string()
}

#[tool]
async fn index(#[validate(length(min = 1))] text: String, #[header("Region")] args: Query) -> String {
    text
}

fn main() {}
