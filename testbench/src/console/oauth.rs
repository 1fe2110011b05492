//! Sign-in with OAuth, in Chromium and at the authorization server of `cargo xtask logins`.
//!
//! `conformance/console/oauth.mjs` starts the servers, because their configuration has the address of the authorization
//! server.

use std::fs;

use anyhow::Result;
use serde_json::json;
use xtask::process;

use super::bench::Bench;
use super::packages::browser;
use crate::conformance::suite;
use crate::row::Row;

pub(super) fn run(bench: &Bench) -> Result<Vec<Row>> {
    let Some(chromium) = browser()? else { return Ok(Vec::new()) };
    let packages = bench.packages()?;
    suite::install_once(&process::root().join("conformance/logins"), suite::EXACTLY)?;
    let folder = bench.folder().join("oauth");
    fs::create_dir_all(&folder)?;
    let settings = json!({
        "chromium": chromium, "outlive": bench.program(), "folder": folder,
        "screenshots": bench.screenshots,
    });
    packages.rows("oauth.mjs", &settings)
}
