//! A server whose tools return 5 MB each, for clients without tasks.
//!
//! `large-server STORE BUDGET TOKEN` serves HTTP on a free port, prints its address, and ends with
//! its standard input. BUDGET is the number of bytes that the caller with this token may store.

use std::{env, error::Error, fmt::Write, io::Read};

use outlive::server::{
    Args, CallToolResult, ContentBlock, Json, Server, Tool,
    hosts::{Hosts, Results},
    http::{HttpConfig, StaticTokens},
    tasks::TaskConfig,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bytes of a result.
const SIZE: usize = 5_000_000;
/// Images of one result. The larger ones are too large to be shown.
const IMAGES: [usize; 5] = [1_500_000, 1_500_000, 900_000, 600_000, 500_000];

#[derive(Deserialize, JsonSchema)]
struct Number {
    number: u64,
}

#[derive(Serialize, JsonSchema)]
struct Table {
    rows: Vec<TableRow>,
}

#[derive(Serialize, JsonSchema)]
struct TableRow {
    id: u64,
    name: String,
}

async fn log(Args(Number { number }): Args<Number>) -> String {
    let mut text = String::with_capacity(SIZE + 100);
    for line in 0.. {
        if text.len() >= SIZE {
            break;
        }
        let level = if line % 1_000 == 999 { "ERROR" } else { "INFO" };
        let _ =
            writeln!(text, "2026-11-18T14:05:00Z {level} build {number}: line {line} of the log");
    }
    text
}

async fn json(Args(Number { number }): Args<Number>) -> Result<String, serde_json::Error> {
    serde_json::to_string(&rows(number))
}

async fn base64(Args(Number { number }): Args<Number>) -> String {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let letter = |at: usize| char::from(ALPHABET[(at * 31 + number as usize) % ALPHABET.len()]);
    (0..SIZE).map(letter).collect()
}

async fn images(Args(Number { number }): Args<Number>) -> CallToolResult {
    let image = |&size: &usize| ContentBlock::image(vec![number as u8; size], "image/png");
    let first = CallToolResult::text("five images");
    IMAGES.iter().map(image).fold(first, CallToolResult::with_content)
}

async fn structured(Args(Number { number }): Args<Number>) -> Json<Table> {
    Json(rows(number))
}

fn rows(number: u64) -> Table {
    // A row has about 50 bytes.
    let row = |id| TableRow { id, name: format!("row {id} of the large table {number}") };
    Table { rows: (0..SIZE as u64 / 50).map(row).collect() }
}

#[tokio::main]
#[expect(
    clippy::print_stdout,
    reason = "the parent process reads the address from standard output"
)]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [store, budget, token] = &arguments[..] else {
        return Err("usage: large-server STORE BUDGET TOKEN".into());
    };
    std::thread::spawn(|| {
        let mut input = std::io::stdin();
        while matches!(input.read(&mut [0; 64]), Ok(1..)) {}
        std::process::exit(0);
    });
    let budget = budget.parse()?;
    let tasks = TaskConfig::open(store)
        .await?
        .max_store_bytes_per_caller(budget)
        .hosts(Hosts::known())
        .results(Results::by_host());
    let server = Server::builder("large", "1")
        .tasks(tasks)
        .tool(Tool::new("log", log))
        .tool(Tool::new("json", json))
        .tool(Tool::new("base64", base64))
        .tool(Tool::new("images", images))
        .tool(Tool::new("structured", structured))
        .build()?;
    let http = HttpConfig::new().authenticator(StaticTokens::new().with("caller", token));
    let serving = server.serve_http("127.0.0.1:0", http).await?;
    println!("{}", serving.address());
    Ok(serving.wait().await?)
}
