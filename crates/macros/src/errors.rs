//! Everything that is wrong, reported at once.

use proc_macro2::TokenStream;
use quote::ToTokens;

/// The errors found so far.
#[derive(Default)]
pub(crate) struct Errors(Option<syn::Error>);

impl Errors {
    /// Adds one about these tokens.
    pub(crate) fn push(&mut self, place: impl ToTokens, message: impl std::fmt::Display) {
        self.add(syn::Error::new_spanned(place, message));
    }

    /// Adds one that was found by others.
    pub(crate) fn add(&mut self, error: syn::Error) {
        match &mut self.0 {
            Some(errors) => errors.combine(error),
            none => *none = Some(error),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Puts the errors after what could be made in spite of them. That keeps the item in place, so
    /// that one mistake is not followed by complaints from everywhere it is used.
    pub(crate) fn beside(self, mut made: TokenStream) -> TokenStream {
        made.extend(self.0.map(|errors| errors.into_compile_error()));
        made
    }
}
