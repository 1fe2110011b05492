//! Streams that were cut, and the calls that went on.
