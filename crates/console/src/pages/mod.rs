//! The pages, one file for each.

pub(crate) mod answer;
