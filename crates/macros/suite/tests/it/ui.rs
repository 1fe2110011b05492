//! Functions that do not compile, and what the author reads then.
//!
//! After a message has been changed: `TRYBUILD=overwrite cargo test -p outlive-macros-suite ui`.

#[test]
fn mistakes_are_explained_where_they_are_made() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
