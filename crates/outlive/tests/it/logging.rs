//! Log lines: who asked for them, and from which level on.
