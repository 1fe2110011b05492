//! What the libraries have to say goes to standard error: warnings, or more if `OUTLIVE_LOG` says so.

use std::env;

use tracing::level_filters::LevelFilter;

use crate::print;

/// Sets it up, once per process.
pub(crate) fn to_stderr() {
    let wanted = env::var("OUTLIVE_LOG").ok();
    let level = wanted.as_deref().map_or(Ok(LevelFilter::WARN), str::parse);
    let subscriber = tracing_subscriber::fmt()
        .with_writer(|| print::Log)
        .with_ansi(console::colors_enabled_stderr())
        .with_target(false)
        .with_max_level(level.as_ref().copied().unwrap_or(LevelFilter::WARN))
        .finish();
    let _ = tracing::subscriber::set_global_default(subscriber);
    if let (Err(_), Some(wanted)) = (level, wanted) {
        tracing::warn!(
            "OUTLIVE_LOG is `{wanted}`; it can be error, warn, info, debug, trace or off"
        );
    }
}
