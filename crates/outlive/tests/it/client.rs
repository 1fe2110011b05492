//! The client: what it says on every wire, and what it makes of what comes back.

mod basics; // calls, reads, prompts, lists, on every transport and in both eras
mod changes; // subscriptions, and results that are kept
mod child; // a server that is a child process
mod faults; // partial results of our server, over a way that breaks
mod group; // several servers under one roof
mod hosted; // tasks of the client's own
mod hostile; // servers that break the rules
mod input_events; // input requests in one place
mod kit; // servers to talk to
mod rules; // what it says, and what it keeps to itself
mod script; // peers that are scripts
mod stream; // partial results
mod task_rules; // what it does about a task, message by message
mod tasks; // calls that go on by themselves
mod tokens; // where tokens come from, and what their source hears
mod wire; // the bytes that are sent, and which generation is found
