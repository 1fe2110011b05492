//! Compile errors, reported together.

use proc_macro2::TokenStream;
use quote::ToTokens;

/// Errors found so far.
#[derive(Default)]
pub(crate) struct Errors(Option<syn::Error>);

impl Errors {
    /// Adds an error at these tokens.
    pub(crate) fn push(&mut self, place: impl ToTokens, message: impl std::fmt::Display) {
        self.add(syn::Error::new_spanned(place, message));
    }

    /// Adds an existing error.
    pub(crate) fn add(&mut self, error: syn::Error) {
        match &mut self.0 {
            Some(errors) => errors.combine(error),
            none => *none = Some(error),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Appends the errors to the generated code. The item stays defined, so that one mistake does
    /// not cause errors wherever the item is used.
    pub(crate) fn beside(self, mut made: TokenStream) -> TokenStream {
        made.extend(self.0.map(|errors| errors.into_compile_error()));
        made
    }
}
