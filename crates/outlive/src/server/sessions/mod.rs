//! Legacy sessions that all replicas on one store share.
//!
//! - `store`: sessions as key-value entries.
//! - `charge`: whom the store charges for them.
//! - `replies`: responses of clients that reach another replica than the one that sent the request.

pub(crate) mod charge;
pub(crate) mod replies;
pub(crate) mod store;
