//! An argument needs a plain name and an owned type.

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
