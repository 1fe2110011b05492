//! All integration tests of the macros, in one binary.

// Generated handlers on a server.
mod expand;
// Types that are forms or choices.
mod form;
// Compile errors; the cases are in `tests/ui`.
mod ui;
