//! What the macros make, and what they refuse: all of it is in `tests`.
