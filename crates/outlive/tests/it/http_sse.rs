//! The HTTP+SSE pair of 2024-11-05.
