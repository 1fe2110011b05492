//! What a caller sees.
