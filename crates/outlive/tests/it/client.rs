//! The client: the requests it sends on every transport and era, and how it handles the responses.

mod basics; // calls, reads, prompts and lists, on every transport and in both eras
mod broken_connections; // partial results over broken connections
mod changes; // subscriptions and cached results
mod child; // servers that are child processes
mod group; // groups of several servers
mod hosted; // input requests that the client answers with tasks
mod hostile; // servers that violate the protocol
mod input_events; // input requests as events
mod kit; // servers for these tests
mod relay; // requests of programs between clients and servers
mod rules; // rules of the specification for clients
mod script; // scripted peers
mod stream; // partial results
mod task_rules; // task messages, with scripted servers
mod tasks; // tasks, with our server
mod tokens; // token sources
mod wire; // request bytes and era detection
