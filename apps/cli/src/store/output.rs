//! Lines on standard output.

use crate::{
    error::{CliError, Kind, Result},
    print::{self},
};
use std::io;

/// Prints a line on standard output. A reader that has left, such as `head`, is not an error.
pub(crate) fn say(text: &str) -> Result<()> {
    match print::data(text) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => Err(CliError::new(Kind::Failed, error)),
        Ok(()) => Ok(()),
    }
}
