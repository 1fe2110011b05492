//! POST: a message comes in. Most calls get one JSON body as their response; a call that sends
//! something before its result, or takes long, gets a stream of events.
//!
//! [`accept`] reads the message, [`respond`] and [`batch`] write the response, [`running`] owns a
//! call while it waits, and [`stream`] writes its events.

mod accept;
mod batch;
mod respond;
mod running;
mod stream;

pub(super) use accept::post;
