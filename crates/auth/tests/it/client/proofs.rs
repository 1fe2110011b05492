//! proofs.
