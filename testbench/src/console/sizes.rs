//! Bytes of the assets, of a first visit, and of the program.

use std::fs;

use anyhow::{Context, Result, ensure};

use super::bench::Bench;
use super::people::ADA;
use super::site::Site;
use super::visitor::Visitor;
use crate::hosts::caller::Caller;
use crate::row::Row;

const KIB: usize = 1 << 10;
const MIB: u64 = 1 << 20;

/// Maximum bytes of the style, the script, the icons, a page and a first visit.
const STYLE: usize = 16 * KIB;
const SCRIPT: usize = 14 * KIB;
const ICONS: usize = 8 * KIB;
const PAGE: usize = 100 * KIB;
const FIRST_VISIT: usize = 140 * KIB;

/// Pages of the console with a full list.
const PAGES: [&str; 6] = ["", "tasks", "overview", "audit", "settings", "in"];

/// Tasks that fill the lists: more than one page.
const TASKS: usize = 120;

const CONFIG: &str = r#"
[tools.echo]
description = "Prints a text."
command = ["echo", "{text}"]
arguments = { text = { type = "string" } }
task = "always"
"#;

pub(super) fn run(bench: &Bench) -> Result<Vec<Row>> {
    let site = Site::start(bench, "sizes", ("sqlite", 1), CONFIG)?;
    let server = site.address(0)?;
    let caller = Caller::with_tasks(server, Some(ADA.token));
    for number in 0..TASKS {
        let text = format!("text {number}, as long as the texts of callers often are");
        caller.call("echo", serde_json::json!({"text": text}))?;
    }
    let ada = Visitor::sign_in(server, ADA.deciding)?;
    let mut rows = Vec::new();
    let mut largest = (0, "");
    for page in PAGES {
        let reply = ada.get(&format!("/console/{page}"))?;
        ensure!(matches!(reply.status, 200 | 303), "/console/{page} returned {}", reply.status);
        largest = largest.max((reply.body.len(), page));
    }
    let first = ada.get("/console/tasks")?;
    let mut visit = first.body.len();
    for (name, most) in [("console.css", STYLE), ("console.js", SCRIPT), ("icons.svg", ICONS)] {
        let path = asset(&first.body, name).with_context(|| format!("no page loads {name}"))?;
        let bytes = ada.get(&format!("/console/{path}"))?.body.len();
        visit += bytes;
        rows.push(row(name, bytes, most));
    }
    rows.push(row(&format!("largest page, {}", largest.1), largest.0, PAGE));
    rows.push(row("first visit: the list of tasks with all assets", visit, FIRST_VISIT));
    if !bench.is_short {
        rows.push(program(bench)?);
    }
    Ok(rows)
}

fn row(name: &str, bytes: usize, most: usize) -> Row {
    let figure = format!("{:.1} KiB", bytes as f64 / KIB as f64);
    Row::new(format!("size of {name}"), figure, format!("≤ {} KiB", most / KIB), bytes <= most)
}

/// Compares the program with one that was built before the console existed.
fn program(bench: &Bench) -> Result<Row> {
    let (case, bar) = ("size of the program, with the console", "+ ≤ 1 MiB");
    let now = fs::metadata(bench.program())?.len();
    let Some(baseline) = &bench.baseline else {
        let figure = format!("{now} bytes; `--baseline PROGRAM` compares it with an older program");
        return Ok(Row::new(case, figure, bar, false));
    };
    let before =
        fs::metadata(baseline).with_context(|| format!("no {}", baseline.display()))?.len();
    let grown = now.saturating_sub(before);
    Ok(Row::new(case, format!("+ {:.2} MiB", grown as f64 / MIB as f64), bar, grown <= MIB))
}

/// Returns the path of an asset that a page loads, relative to the console.
fn asset<'h>(html: &'h str, name: &str) -> Option<&'h str> {
    let end = html.find(&format!("/{name}\""))? + 1 + name.len();
    let start = html[..end].rfind('"')? + 1;
    Some(html[start..end].trim_start_matches("./"))
}

#[cfg(test)]
mod tests {
    use super::asset;

    #[test]
    fn asset_of_page_is_found_by_its_name() {
        let html = r#"<link href="./assets/1f/console.css"><script src="./assets/1f/console.js">"#;
        assert_eq!(asset(html, "console.css"), Some("assets/1f/console.css"));
        assert_eq!(asset(html, "console.js"), Some("assets/1f/console.js"));
        assert_eq!(asset(html, "icons.svg"), None);
    }
}
