//! Lines on standard output.

use crate::{
    error::{CliError, Kind, Result},
    print::{self},
};
use std::io;

/// Says a line on standard output. Whoever does not read on, as `head`, is no trouble.
pub(crate) fn say(text: &str) -> Result<()> {
    match print::data(text) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => Err(CliError::new(Kind::Failed, error)),
        Ok(()) => Ok(()),
    }
}
