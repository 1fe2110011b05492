//! The client: what it says on every wire, and what it makes of what comes back.

mod basics; // calls, reads, prompts, lists, on every transport and in both eras
mod kit; // servers to talk to
mod tasks; // calls that go on by themselves
