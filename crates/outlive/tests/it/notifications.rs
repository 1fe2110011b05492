//! Notifications of events of tasks, to real receivers over HTTP.

mod building; // mistakes in targets
mod messages; // contents of messages
mod network; // addresses that a webhook must not reach
mod overview; // counts and workers for a console
mod receiver; // an HTTP receiver with scripted responses
mod retrying; // failed attempts, leases, slow receivers
