//! One binary for all tests of the crate that use it from outside.

// What macros make, registered on a server and asked by a client.
mod expand;
// What may be a form, or a choice in one.
mod form;
// What macros refuse, and with which words: `tests/ui`.
mod ui;
