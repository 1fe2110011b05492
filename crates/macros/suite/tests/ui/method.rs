//! A handler cannot have `self`; shared data is state.

use outlive::tool;

struct Calculator;

impl Calculator {
    #[tool]
    async fn add(&self, a: i64, b: i64) -> String {
        (a + b).to_string()
    }
}

fn main() {}
