//! A program that only supervises jobs, for the tests of this crate.

use std::{env, path::Path, process::ExitCode};

fn main() -> ExitCode {
    let mut arguments = env::args_os().skip(1);
    let folder = arguments.next().filter(|word| word == outlive_jobs::SUPERVISE);
    match folder.and(arguments.next()).map(|folder| outlive_jobs::supervise(Path::new(&folder))) {
        Some(Ok(())) => ExitCode::SUCCESS,
        Some(Err(error)) => {
            // Written to the file `log` of the job.
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
        None => ExitCode::from(2),
    }
}
