//! Handlers have no `self`; what they share is state.

use outlive::tool;

struct Calculator;

impl Calculator {
    #[tool]
    async fn add(&self, a: i64, b: i64) -> String {
        (a + b).to_string()
    }
}

fn main() {}
