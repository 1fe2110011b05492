//! Setters of records.

/// Adds a setter for each field. Records are non-exhaustive, so other crates build them with `new`,
/// `default` and setters.
macro_rules! setters {
    ($record:ident { $($field:ident: $type:ty),* $(,)? }) => {
        impl $record {
            $(
                #[doc = concat!("Sets [`", stringify!($field), "`](Self#structfield.", stringify!($field), ").")]
                #[must_use]
                pub fn $field(mut self, $field: $type) -> Self {
                    self.$field = $field;
                    self
                }
            )*
        }
    };
}
pub(crate) use setters;
