//! Legacy sessions that all replicas on one store share.
//!
//! - `store`: sessions as key-value entries.
//! - `charge`: the byte quota that session entries count against.
//! - `replies`: client responses that arrive at another replica than the one that sent the request.

pub(crate) mod charge;
pub(crate) mod replies;
pub(crate) mod store;
