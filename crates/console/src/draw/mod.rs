//! Numbers as SVG: the timeline of a task and the charts of the overview.
//!
//! A drawing has a title and a description. The page shows the same numbers as a table. Colors come
//! from classes of the style sheet, so drawings follow the theme.

mod bars;
mod lines;
mod timeline;

pub(crate) use bars::{Stack, bars};
pub(crate) use lines::{Quantiles, lines};
pub(crate) use timeline::{Bar, Lane, Mark, timeline};
