//! The client: what it says on every wire, and what it makes of what comes back.

mod basics; // calls, reads, prompts, lists, on every transport and in both eras
mod changes; // subscriptions, and results that are kept
mod child;
mod hosted;
mod hostile; // servers that break the rules
mod hub;
mod kit; // servers to talk to
mod script; // peers that are scripts
mod stream;
mod tasks; // calls that go on by themselves
mod wire; // the bytes that are sent, and which generation is found // several servers under one roof // partial results // a server that is a child process // tasks of the client's own
