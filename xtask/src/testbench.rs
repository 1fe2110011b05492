//! Commands that need the product. They are in `testbench`, which is built for them.

use std::process::Command;

use anyhow::Result;
use xtask::process::{self, Build};

/// The variable with the address of a database for tests and benchmarks.
pub(crate) const ADDRESS: &str = "OUTLIVE_TEST_POSTGRES";

/// The commands of `testbench`.
pub(crate) const COMMANDS: &[&str] = &[
    "clients",
    "conformance",
    "console",
    "crash",
    "gateway-isolation",
    "gateway-restarts",
    "hostile",
    "hostile-upstreams",
    "hosts",
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
    "views",
    "workers",
];

/// The option that also builds the tests, as the steps of `cargo xtask test` do.
const WITH_TESTS: &str = "--with-tests";

/// Builds `testbench` and runs it with these words. The first word is the command.
pub(crate) fn run<S: AsRef<str>>(words: &[S]) -> Result<()> {
    let with_tests = words.iter().any(|word| word.as_ref() == WITH_TESTS);
    let build = if with_tests { Build::WithTests } else { Build::Alone };
    let testbench = process::built("testbench", "testbench", build)?;
    let mut command = Command::new(testbench);
    command.args(words.iter().map(AsRef::as_ref)).current_dir(process::root());
    process::forget_package(&mut command);
    process::run(&mut command)
}

/// Runs a cargo command with a temporary database.
pub(crate) fn with_postgres(options: &[&str], cargo: &Command, build: Build) -> Result<()> {
    let testbench = process::built("testbench", "testbench", build)?;
    let mut command = Command::new(testbench);
    command.arg("postgres").args(options).arg("--").arg(cargo.get_program()).args(cargo.get_args());
    process::forget_package(&mut command);
    process::run(command.current_dir(process::root()))
}
