//! The schema of a tool is made from its types, so they have to be known.

use outlive::tool;

#[tool]
async fn add<T: Into<i64>>(a: T) -> String {
    a.into().to_string()
}

#[tool]
async fn describe(value: impl ToString) -> String {
    value.to_string()
}

fn main() {}
