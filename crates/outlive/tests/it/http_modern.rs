//! Answers, streams, headers and cancellation by disconnect on 2026-07-28.
