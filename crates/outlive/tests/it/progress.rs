//! Tokens, order, rate.
