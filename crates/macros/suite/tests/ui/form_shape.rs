//! Only structs with named fields and enums without data can derive `Form`.

use outlive::Form;

#[derive(serde::Deserialize, schemars::JsonSchema, Form)]
struct Pair(String, String);

#[derive(serde::Deserialize, schemars::JsonSchema, Form)]
enum Shape {
    Point,
    Circle { radius: f64 },
    Square(f64),
}

#[derive(serde::Deserialize, schemars::JsonSchema, Form)]
struct Wrapped<T> {
    value: T,
}

fn main() {}
