//! POST: receives a message. Most calls get one JSON body as their response. A call that sends
//! messages before its result, or that takes long, gets an event stream.
//!
//! [`accept`] reads the message, [`respond`] and [`batch`] write the response, [`running`] owns a
//! call while it waits, and [`stream`] writes its events.

mod accept;
mod batch;
mod respond;
mod running;
mod stream;

pub(super) use accept::post;
