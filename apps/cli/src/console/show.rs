//! Shows the address of a console.

use serde_json::json;

use crate::{
    auth::Browser,
    error::{CliError, Kind, Result},
    print::{self, talk},
};

/// Output options for the address of a console.
#[derive(Clone, Copy)]
pub(super) struct Shown {
    pub(super) opens: bool,
    pub(super) json: bool,
}

/// Prints an address, and opens it in the browser.
pub(super) fn show(url: &str, signs_in: bool, shown: Shown) -> Result<()> {
    let text = match shown.json {
        true => json!({"url": url, "signsIn": signs_in}).to_string(),
        false => url.to_owned(),
    };
    print::data(&text).map_err(|error| CliError::new(Kind::Failed, error))?;
    if signs_in {
        talk!("signs one browser on this machine in: once, within 10 minutes");
    }
    if shown.opens && print::is_shown() {
        match Browser::find() {
            Some(browser) if browser.open(url) => {}
            _ => talk!("open the address in a browser"),
        }
    }
    Ok(())
}
