//! What a server says of a task, joined to what is known of its call.

use crate::call::show;
use outlive::client::tasks::TaskSnapshot;
use serde_json::{Value, json};

/// What is known of a call and what its task looks like, as plain JSON.
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
    seen["questions"] =
        json!(snapshot.questions.as_ref().filter(|questions| !questions.is_empty()));
    seen
}
