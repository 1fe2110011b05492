//! The client commands of the program, against a real server (`examples/stage.rs`), in both eras.

mod answers; // input responses without a terminal
mod calls; // arguments, results, errors, exit codes
mod hostile; // every command against a hostile server
mod inspect; // contents of a server
mod operating; // tasks of all callers, through a store
mod saved; // saved calls: list, several at once, and none
pub(crate) mod stage; // helpers: a server and the program
mod tasks; // detached and resumed calls
mod terminal; // at a terminal: bars, forms, Ctrl-C
pub(crate) mod tmux; // helper: a terminal
mod words; // parsing of the command line, and its errors
