//! Addresses of the server for people, and the checks of notification targets.

use std::collections::HashSet;

use crate::server::{
    api::{builder::ServerBuilder, notifications::Notifications},
    build_error::BuildError,
};

impl ServerBuilder {
    /// Sets the URL under which people reach the server, such as `https://ops.example.com/outlive`.
    /// Answer links and the addresses of pages are below it.
    pub fn public_url(mut self, url: impl Into<String>) -> Self {
        self.public_url = Some(url.into().trim_end_matches('/').to_owned());
        self
    }

    /// Sets the path of the console below the public URL; `/console` by default. Notifications
    /// contain the addresses of its pages if the server has a console
    /// ([`TaskConfig::index_tasks`](crate::server::tasks::TaskConfig::index_tasks)).
    pub fn console_path(mut self, path: impl Into<String>) -> Self {
        self.console_path = path.into().trim_end_matches('/').to_owned();
        self
    }
}

/// Checks the targets of notifications.
pub(super) fn check(builder: &ServerBuilder) -> Result<(), BuildError> {
    let Some(Notifications { targets, .. }) = &builder.notify else { return Ok(()) };
    let mut names = HashSet::new();
    for target in targets {
        target.check().map_err(BuildError)?;
        let name = target.name();
        if !names.insert(name) {
            return Err(BuildError(format!(
                "two notification targets are named `{name}`; name each with `Target::new`"
            )));
        }
    }
    match builder.tasks.as_ref().is_some_and(|tasks| tasks.people.is_some()) {
        true => Ok(()),
        false => Err(BuildError(
            "notifications need a store; call `.tasks(…)` with `TaskConfig::open` or `TaskConfig::people`"
                .to_owned(),
        )),
    }
}
