//! One binary for all tests of the crate that use it from outside.

// What a JSON-RPC message is, and what is none.
mod envelope;
// Small cases that need nothing but this repository; most new tests go here.
mod roundtrip;
// The examples that the specification publishes, if they are at hand.
mod spec_examples;
