//! Store options for operators.

use crate::error::Result;

/// Selects the store, if the command is about the tasks of all callers.
#[derive(clap::Args)]
pub(crate) struct Stores {
    /// Uses the tasks of all callers, in the store of ./outlive.toml or the only store in the data
    /// folder
    #[arg(long, conflicts_with = "server")]
    all_callers: bool,
    /// Uses the tasks of all callers in this store: sqlite:FILE or postgres://…
    #[arg(long, value_name = "URL", conflicts_with = "server")]
    store: Option<String>,
}

impl Stores {
    /// Returns the URL of the store. Returns `None` if the command is about the user's own calls.
    pub(super) fn url(&self) -> Result<Option<String>> {
        match (&self.store, self.all_callers) {
            (Some(url), _) => Ok(Some(url.clone())),
            (None, true) => crate::store::url_or_own(None).map(Some),
            (None, false) => Ok(None),
        }
    }
}
