//! A handler must be async.

use outlive::tool;

#[tool]
fn add(a: i64, b: i64) -> String {
    (a + b).to_string()
}

fn main() {
    let _ = add::tool().read_only();
}
