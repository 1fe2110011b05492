//! A handler cannot be generic, because the schema is generated from its types.

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
