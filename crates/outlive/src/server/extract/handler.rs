//! Handlers are async functions whose arguments are made from the call.

use std::future::Future;

use crate::server::extract::{
    cx::Cx,
    extractor::{Extract, HandlerRequirements, Rejection},
};

/// An async function that handles calls. Implemented for functions with up to 16 arguments, each
/// of which can be [extracted](Extract). `Marker` only tells the implementations apart.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot handle calls",
    note = "handlers are `async fn`s with up to 16 arguments, each `Args<T>`, `State<T>`, `Cx` or another extractor"
)]
pub trait Handler<Marker>: Send + Sync + 'static {
    /// What the function returns.
    type Output;
    /// The work, before it is boxed.
    type Future: Future<Output = Self::Output> + Send + 'static;

    /// Makes the arguments and starts the work. Arguments are read here, before anything is boxed.
    ///
    /// # Errors
    ///
    /// When an argument cannot be made.
    fn start(&self, cx: &Cx) -> Result<Self::Future, Rejection>;

    /// What the arguments need.
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

            #[allow(unused_variables, reason = "functions without arguments use nothing of the call")]
            fn start(&self, cx: &Cx) -> Result<Fut, Rejection> {
                Ok(self($($argument::extract(cx)?),*))
            }

            #[allow(unused_mut, reason = "functions without arguments need nothing")]
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
