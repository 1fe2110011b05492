//! Lines that are no messages, and what comes back.
