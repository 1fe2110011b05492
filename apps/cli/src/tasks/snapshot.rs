//! Combines a saved call with the status of its task.

use crate::call::show;
use outlive::client::tasks::TaskSnapshot;
use serde_json::{Value, json};

/// Adds the status of a task to the description of its call, as JSON.
pub(crate) fn seen(mut seen: Value, snapshot: &TaskSnapshot) -> Value {
    let far = snapshot.progress.as_ref();
    seen["state"] = json!(snapshot.status.as_str());
    seen["message"] = json!(show::doing(snapshot));
    seen["progress"] = json!(
        far.map(|far| json!({"progress": far.done, "total": far.total, "message": far.message}))
    );
    seen["created"] = json!(snapshot.created);
    seen["updated"] = json!(snapshot.updated);
    seen["ttlMs"] = json!(snapshot.ttl);
    seen["inputRequests"] =
        json!(snapshot.questions.as_ref().filter(|questions| !questions.is_empty()));
    seen
}
