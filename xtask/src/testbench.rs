//! Commands that need the product: `testbench` has them, and is built for them.

use std::process::Command;

use anyhow::Result;
use xtask::process::{self, Build};

/// Where tests and benchmarks find the address of a database.
pub(crate) const ADDRESS: &str = "OUTLIVE_TEST_POSTGRES";

/// The commands of `testbench`.
pub(crate) const COMMANDS: &[&str] = &[
    "clients",
    "conformance",
    "crash",
    "hostile",
    "interop",
    "killed-clients",
    "logins",
    "postgres",
    "program",
    "rolling",
    "site",
    "soak",
    "streams",
    "takeover",
];

/// The option that has a command build the tests, too, as the steps of `cargo xtask test` do.
const WITH_TESTS: &str = "--with-tests";

/// Builds `testbench` and runs it with these words, the first of which is the command.
pub(crate) fn run<S: AsRef<str>>(words: &[S]) -> Result<()> {
    let with_tests = words.iter().any(|word| word.as_ref() == WITH_TESTS);
    let build = if with_tests { Build::WithTests } else { Build::Alone };
    let testbench = process::built("testbench", "testbench", build)?;
    let mut command = Command::new(testbench);
    command.args(words.iter().map(AsRef::as_ref)).current_dir(process::root());
    process::run(&mut command)
}

/// Runs a cargo command with a database, which ends with it.
pub(crate) fn with_postgres(options: &[&str], cargo: &Command, build: Build) -> Result<()> {
    let testbench = process::built("testbench", "testbench", build)?;
    let mut command = Command::new(testbench);
    command.arg("postgres").args(options).arg("--").arg(cargo.get_program()).args(cargo.get_args());
    process::run(command.current_dir(process::root()))
}
