//! Suggestions for arguments.
