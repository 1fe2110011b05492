//! `cargo xtask tidy`: project rules beyond rustfmt and clippy.
//!
//! A rule is one file in `tidy/`: a function from the project's files to findings, so that its
//! tests are texts. [`RULES`] is the list. Each rule names its paths, and a missing path is a
//! finding too, so that a moved folder does not disable a rule. [`COUNTED`] are rules that the code
//! does not follow everywhere yet; `ceilings` has the allowed number of findings per crate.

mod allow;
mod any_objects;
mod architecture;
mod ceilings;
mod commits;
mod draw;
mod era_wall;
mod file_head;
mod file_size;
mod findings;
mod floors;
mod function_length;
mod hidden_items;
mod import_cycles;
mod layers;
mod manifest;
mod method_names;
mod module_roots;
mod no_glob_reexport;
mod no_ignore;
mod old_names;
mod one_way_out;
mod plots;
mod private_words;
mod pure_eras;
mod requirements;
mod rules;
mod source;
mod trait_size;
mod tree;
mod words;

pub(crate) use draw::run as draw;
pub(crate) use rules::run;
