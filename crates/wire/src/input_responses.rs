//! The input responses of a request.

use std::collections::BTreeMap;

use crate::RawJson;

/// Input responses by the key of their input request: an [`ElicitResult`](crate::ElicitResult), a
/// [`CreateMessageResult`](crate::CreateMessageResult) or a
/// [`ListRootsResult`](crate::ListRootsResult).
pub type InputResponses = BTreeMap<String, RawJson>;
