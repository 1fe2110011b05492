//! Connects to each upstream, and lists it.

use std::path::Path;

use super::Finding;
use crate::{
    print,
    serve::{ServerPlace, config::Config},
    upstreams::{Checked, connect},
};

const UPSTREAM: &str = "upstream";

pub(super) async fn check(config: &Config, file: &Path, place: &ServerPlace) -> Vec<Finding> {
    if config.upstreams.is_empty() {
        return Vec::new();
    }
    match connect(config, file, None, place).await {
        Ok(checked) => checked.iter().map(finding).collect(),
        Err(error) => {
            let remedy = error.next_step().unwrap_or("correct the file").to_owned();
            vec![Finding::failure(UPSTREAM, error.to_string(), remedy)]
        }
    }
}

fn finding(checked: &Checked) -> Finding {
    let name = &checked.report.name;
    match checked.problem() {
        Some((what, remedy)) => Finding::failure(UPSTREAM, format!("`{name}`: {what}"), remedy),
        None => {
            let tools = print::count(checked.report.tools.len(), "tool");
            Finding::ok(UPSTREAM, format!("`{name}` lists {tools}"))
        }
    }
}
