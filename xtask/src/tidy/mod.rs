//! `cargo xtask tidy`: the rules of this project that neither rustfmt nor clippy knows.
//!
//! A rule is one file in `tidy/`: a function from the project's files to findings, so that its
//! tests are texts. [`RULES`] is the list. Each rule names the paths it looks at, and a path that
//! is gone is a finding too: a moved folder must not turn a rule into silence. [`COUNTED`] are rules that
//! the code does not keep everywhere yet: `ceilings` has how many findings each crate may still have.

mod allow;
mod any_objects;
mod architecture;
mod ceilings;
mod commits;
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
mod private_words;
mod pure_eras;
mod requirements;
mod rules;
mod source;
mod trait_size;
mod tree;
mod words;

pub(crate) use rules::run;
