//! Which store an operator means.

use crate::error::Result;

/// Which store is meant, if the tasks of all callers are.
#[derive(clap::Args)]
pub(crate) struct Stores {
    /// Means the tasks of all callers: in the store of the server of this folder, or in the only one
    /// of the data folder
    #[arg(long, conflicts_with = "server")]
    all_callers: bool,
    /// Means the tasks of all callers in this store: sqlite:FILE or postgres://…
    #[arg(long, value_name = "URL", conflicts_with = "server")]
    store: Option<String>,
}

impl Stores {
    /// The URL of the store; `None` if the user's own calls are meant.
    pub(super) fn url(&self) -> Result<Option<String>> {
        match (&self.store, self.all_callers) {
            (Some(url), _) => Ok(Some(url.clone())),
            (None, true) => crate::store::url_or_own(None).map(Some),
            (None, false) => Ok(None),
        }
    }
}
