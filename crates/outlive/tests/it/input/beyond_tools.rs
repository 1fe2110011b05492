//! Input requests outside of tools, explicit rounds, and continuation on other replicas.

mod explicit; // handlers that return their input requests
mod places; // prompts, resources and templates
mod plain; // requests with a request state that is not needed
mod upgrade;
mod yielding; // `yield_to_replica` // handler revisions
