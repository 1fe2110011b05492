//! Asking in other places and in other ways than a tool that elicits.

mod explicit; // handlers that return their questions
mod places; // prompts, resources, templates; and where nobody can ask
mod plain; // requests that bring a state to where none is needed
mod shed; // sending a client to another replica
mod upgrade; // calls that began on another version
