//! Calls that wait for the approval of people.

mod build; // rules that a server rejects
mod clients; // what each kind of client receives
mod decisions; // which calls need approval, and who decides
mod denials; // denials before a worker has seen them
mod handlers; // input requests of handlers to people
mod model; // random orders of requests, votes, timeouts, cancellations and reloads
mod states; // every state of an approval
mod world; // a gated tool, its callers and its approvers
