//! The integration tests of the crate.

// Classification of JSON-RPC messages.
mod envelope;
// Round trips of single types, with inline JSON. Most new tests belong here.
mod roundtrip;
// Round trips of the published examples, if `OUTLIVE_SPEC_DIR` is set.
mod spec_examples;
