//! A real process on real pipes.
