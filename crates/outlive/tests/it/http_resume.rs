//! Resumption of legacy streams.

mod changes; // the GET stream
mod leaving; // streams that the server closes with a retry time
mod missed; // events sent while no client was connected
mod store; // event stores
mod takeover; // two connections for one stream
