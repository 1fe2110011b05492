//! A form is flat: errors point at nested fields.

use outlive::Form;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Address {
    street: String,
}

#[derive(serde::Deserialize, schemars::JsonSchema, Form)]
struct Person {
    name: String,
    address: Address,
    nicknames: Vec<String>,
}

fn main() {}
