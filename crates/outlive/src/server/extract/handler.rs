//! Async functions as handlers.

use std::future::Future;

use crate::server::extract::{
    cx::Cx,
    extractor::{Extract, HandlerRequirements, Rejection},
};

/// An async function that handles calls. Implemented for functions with up to 16 arguments that
/// implement [`Extract`]. `Marker` only separates the implementations.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot handle calls",
    note = "handlers are `async fn`s with up to 16 arguments, each `Args<T>`, `State<T>`, `Cx` or another extractor"
)]
pub trait Handler<Marker>: Send + Sync + 'static {
    /// Return type of the function.
    type Output;
    /// Future of the function.
    type Future: Future<Output = Self::Output> + Send + 'static;

    /// Extracts the arguments and calls the function. Extraction happens before the future is
    /// boxed.
    ///
    /// # Errors
    ///
    /// Returns an error if an argument cannot be extracted.
    fn start(&self, cx: &Cx) -> Result<Self::Future, Rejection>;

    /// Returns the requirements of the arguments.
    fn needs() -> HandlerRequirements;
}

macro_rules! handlers {
    ($(($($argument:ident),*))*) => {$(
        impl<F, Fut, $($argument),*> Handler<($($argument,)*)> for F
        where
            F: Fn($($argument),*) -> Fut + Send + Sync + 'static,
            Fut: Future + Send + 'static,
            $($argument: Extract,)*
        {
            type Output = Fut::Output;
            type Future = Fut;

            #[allow(unused_variables, reason = "functions without arguments do not use the call")]
            fn start(&self, cx: &Cx) -> Result<Fut, Rejection> {
                Ok(self($($argument::extract(cx)?),*))
            }

            #[allow(unused_mut, reason = "functions without arguments have no requirements")]
            fn needs() -> HandlerRequirements {
                let mut needs = HandlerRequirements::default();
                $($argument::requirements(&mut needs);)*
                needs
            }
        }
    )*};
}

handlers! {
    ()
    (A)
    (A, B)
    (A, B, C)
    (A, B, C, D)
    (A, B, C, D, E)
    (A, B, C, D, E, G)
    (A, B, C, D, E, G, H)
    (A, B, C, D, E, G, H, I)
    (A, B, C, D, E, G, H, I, J)
    (A, B, C, D, E, G, H, I, J, K)
    (A, B, C, D, E, G, H, I, J, K, L)
    (A, B, C, D, E, G, H, I, J, K, L, M)
    (A, B, C, D, E, G, H, I, J, K, L, M, N)
    (A, B, C, D, E, G, H, I, J, K, L, M, N, O)
    (A, B, C, D, E, G, H, I, J, K, L, M, N, O, P)
    (A, B, C, D, E, G, H, I, J, K, L, M, N, O, P, Q)
}
