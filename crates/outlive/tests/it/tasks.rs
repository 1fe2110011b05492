//! Tools that outlive their requests, on both dialects.

mod budget; // how much callers may have stored, and what is not stored at all
mod cleaning; // what is done after tasks that were cancelled or have expired
mod crashes; // processes that are lost, at every place where it matters
mod dialects; // what is answered, by revision and by what the client declared
mod drain; // a server that stops gives its tasks to others
mod full; // tasks whose caller has as many bytes stored as it may
mod legacy; // 2025-11-25: a status to poll, a result to wait for
mod legacy_rules; // what it says, line by line
mod listing; // the list that every version has
mod modern; // the extension of 2026-07-28
mod modern_rules; // what it says, line by line
mod once; // what is done once, however often it is asked for
mod operating; // what operators see and do
mod outside; // work that is done elsewhere
mod peers; // how many each address may have
mod permits; // who waits for a permit, and where
mod promotion; // calls that become tasks before their first step
mod races; // two things at once
mod spilled; // what the store carries for a client
mod stage; // replicas over one store, and tools that stop where a test wants
mod stopping; // what a cancelled task still does
mod takeover; // what another process makes of a task
mod watched; // what is written down, counted and slowed down
mod world; // the tools, and clients that hold tasks
