//! Relayed requests: what a program between a client and a server sees and sends.

mod calls; // results, rounds, tasks and cancellation, with our server
mod connections; // processes, sessions and lists
mod inputs; // input requests of legacy servers, and their withdrawal
mod streams; // response streams that are resumed
