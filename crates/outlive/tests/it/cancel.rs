//! Cancellation, and what it spares.
