//! Behaviour of the crate, by subject.

mod jose; // signed tokens and their keys, held against the examples of the RFCs
