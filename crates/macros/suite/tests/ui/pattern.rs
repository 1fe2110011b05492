//! An argument has the name of its parameter, so the parameter must have one.

use outlive::tool;

#[tool]
async fn length((x, y): (f64, f64), _: bool) -> String {
    x.hypot(y).to_string()
}

#[tool]
async fn shout(text: &str) -> String {
    text.to_uppercase()
}

fn main() {}
