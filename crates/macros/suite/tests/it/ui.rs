//! Compile errors of the macros.
//!
//! To update the messages: `TRYBUILD=overwrite cargo test -p outlive-macros-suite ui`.

#[test]
fn invalid_code_reports_error_at_its_span() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
