//! The plots of `docs/performance.md`.
//!
//! `cargo xtask bench --write` and `cargo xtask takeover --write` write the figures to
//! `docs/performance/data/` ([`data`]). `cargo xtask bench --plot` draws one SVG file per plot from
//! them, without a measurement. Every plot is a function from figures to text, so that `cargo xtask
//! tidy` can compare the files with their figures.
//!
//! Plots have a light background of their own, as the other drawings, and are readable on dark pages.
//! Marks differ in color and shape.

mod calls;
pub mod data;
mod drawing;
mod plots;
mod scale;
mod stored_tasks;
mod streams;
mod takeover;

pub use plots::{PLOTS, Plot};
