//! Rates, concurrency, sizes.
