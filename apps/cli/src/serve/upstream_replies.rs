//! Executes requests of `outlive upstreams` in a running server.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use tokio::time::{MissedTickBehavior, interval};

use super::{upstream_requests::folder, upstreams::Upstreams};
use crate::call::private_file::write_private;

/// Poll interval of requests.
const LOOK: Duration = Duration::from_millis(250);

/// Time after which the server deletes a reply that was not read.
const REPLY_TTL: Duration = Duration::from_secs(60);

/// Executes requests, until dropped.
pub(super) async fn serve(data: PathBuf, upstreams: Upstreams) {
    let folder = folder(&data);
    let mut looks = interval(LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        looks.tick().await;
        let Ok(files) = fs::read_dir(&folder) else { continue };
        for file in files.flatten().map(|file| file.path()) {
            match file.extension().and_then(|extension| extension.to_str()) {
                Some("request") => execute(&file, &upstreams).await,
                Some("reply") if is_old(&file) => drop(fs::remove_file(&file)),
                _ => {}
            }
        }
    }
}

async fn execute(file: &Path, upstreams: &Upstreams) {
    let text = fs::read(file);
    // Removed first: a request is executed at most once.
    if fs::remove_file(file).is_err() {
        return;
    }
    let Ok(request) = text.and_then(|text| Ok(serde_json::from_slice(&text)?)) else { return };
    let reply = upstreams.execute(&request).await;
    tracing::info!(?request, tools = ?reply.tools, "executed a request of `outlive upstreams`");
    let written = serde_json::to_vec(&reply).map_err(io::Error::from);
    if let Err(error) = written.and_then(|text| write_private(&file.with_extension("reply"), &text))
    {
        tracing::warn!(%error, "cannot write the reply to `outlive upstreams`");
    }
}

fn is_old(file: &Path) -> bool {
    let modified = fs::metadata(file).and_then(|about| about.modified());
    modified.is_ok_and(|modified| modified.elapsed().is_ok_and(|age| age > REPLY_TTL))
}
