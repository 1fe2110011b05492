//! A client on a pipe: one message per line.
