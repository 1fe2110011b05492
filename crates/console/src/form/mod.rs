//! Elicitation forms in HTML.
//!
//! `field` reads the fields of a form, `render` writes them as HTML, and `read` converts the values
//! that a browser submits back to JSON.

mod field;
mod read;
mod render;

pub(crate) use field::{Field, fields};
pub(crate) use read::{Answer, read};
pub(crate) use render::{errors, render};
