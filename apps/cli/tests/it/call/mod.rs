//! The client side of the program, against a real server (`examples/stage.rs`), on both eras.

// Answers to questions without a terminal.
mod answers;
// Arguments, results, errors, exit codes.
mod calls;
// What a server has.
mod inspect;
// A server and the program, started for a test.
mod stage;
// What is written down, and gone on with.
mod tasks;
// At a terminal: bars, forms, Ctrl-C.
mod terminal;
// A terminal to look at.
mod tmux;
