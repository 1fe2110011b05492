//! `cargo xtask bench`: runs the benchmark; what is typed behind it is the benchmark's own.

use std::env;

use anyhow::Result;

use crate::args::Args;
use crate::postgres::{self, Postgres, Programs};
use crate::process;

pub(crate) fn run(args: Args) -> Result<()> {
    let words = args.rest();
    let mut bench = process::measuring("bench", &words);
    // A database for as long as it is measured, unless there is one.
    let wants_postgres = words.windows(2).any(|pair| pair == ["--store", "postgres"]);
    let _postgres = match wants_postgres && env::var_os(postgres::ADDRESS).is_none() {
        true => {
            let postgres = Postgres::start(&Programs::find()?)?;
            bench.env(postgres::ADDRESS, postgres.url());
            Some(postgres)
        }
        false => None,
    };
    process::run(&mut bench)
}
