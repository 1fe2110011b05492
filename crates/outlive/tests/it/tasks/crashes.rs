//! Processes that are lost, at every place where it matters, and what the next one makes of it.
//!
//! Whoever comes to a place is stopped there for ever, and its process is dropped with everything
//! in it. Another one, over the same store, is asked what a client would ask.

mod answering; // questions and answers
mod creating; // tasks that are being made
mod ending; // the end, and being forgotten
mod everywhere; // one story, lost at each of its writes
mod file; // the same with a store in a file
mod outage; // a store that cannot be used
mod revisions; // handlers that were changed meanwhile
mod running; // tasks at work
