//! Streams that were cut, and the calls that went on.

mod changes; // the GET stream
mod leaving; // the server itself tells the client to come back
mod missed; // what was said while nobody listened
mod store; // where events are kept, and for how long
mod takeover; // two connections for one stream
