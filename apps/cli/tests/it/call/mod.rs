//! The client side of the program, against a real server (`examples/stage.rs`), on both eras.

mod answers; // answers to questions without a terminal
mod calls; // arguments, results, errors, exit codes
mod hostile; // a server that means harm, in front of every command
mod inspect; // what a server has
mod operating; // the tasks of all callers, over a store
mod saved; // handles: their list, several at once, and none
pub(crate) mod stage; // a server and the program, started for a test
mod tasks; // what is written down, and gone on with
mod terminal; // at a terminal: bars, forms, Ctrl-C
pub(crate) mod tmux; // a terminal to look at
mod words; // what the words of a command line mean, and what is said of wrong ones
