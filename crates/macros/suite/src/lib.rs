//! Tests of the macros, in `tests`.
