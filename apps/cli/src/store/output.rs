//! Lines on standard output.

use crate::{
    error::{CliError, Kind, Result},
    print::{self},
};
use std::io;

/// Prints a line to standard output. Exits with success if the reader, such as `head`, closed the
/// pipe.
pub(crate) fn say(text: &str) -> Result<()> {
    match print::data(text) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => Err(CliError::new(Kind::Failed, error)),
        Ok(()) => Ok(()),
    }
}
