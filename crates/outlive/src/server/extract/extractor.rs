//! What a handler may take: each argument is made from the call by its type.

use std::{any::TypeId, ops::Deref, sync::Arc};

use outlive_protocol::{Principal, ProtocolError, Session};
use outlive_schema::{Schema, SchemaError};
use outlive_wire::RawJson;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::server::{
    env::environment::Env,
    extract::cx::{Cx, Unreadable},
};

/// Something a handler can take as an argument.
///
/// Implement it for types of your own to make them from a [`Cx`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of a handler",
    note = "arguments from the client are wrapped: `Args<{Self}>`; shared state is `State<{Self}>`"
)]
pub trait Extract: Sized + Send + 'static {
    /// Makes the argument.
    ///
    /// # Errors
    ///
    /// When the call does not hold what is needed.
    fn extract(cx: &Cx) -> Result<Self, Rejection>;

    /// Tells what the argument needs, when the handler is registered.
    fn requirements(_needs: &mut HandlerRequirements) {}
}

/// Why an argument could not be made.
#[derive(Debug)]
pub struct Rejection(pub(crate) RejectionKind);

#[derive(Debug)]
pub(crate) enum RejectionKind {
    /// The client's arguments do not fit the type.
    Arguments(serde_json::Error),
    /// The request is refused.
    Refused(ProtocolError),
}

impl From<ProtocolError> for Rejection {
    fn from(fault: ProtocolError) -> Self {
        Self(RejectionKind::Refused(fault))
    }
}

/// What the arguments of a handler need, gathered when it is registered.
#[derive(Debug, Default)]
pub struct HandlerRequirements {
    pub(crate) input: Option<Result<Schema, SchemaError>>,
    pub(crate) states: Vec<(TypeId, &'static str)>,
    /// Whether the handler may ask its client, and so may run again.
    pub(crate) durable: bool,
    /// Whether the handler adds to its result while it works, without being run again.
    pub(crate) emits: bool,
}

impl HandlerRequirements {
    /// Checks that the server has all shared state that the arguments need.
    pub(crate) fn check(&self, env: &Env) -> Result<(), String> {
        match self.states.iter().find(|(id, _)| !env.states.contains_key(id)) {
            None => Ok(()),
            Some((_, name)) => Err(format!(
                "its handler takes State<{name}>, which the builder was not given; call `.state(…)` with one"
            )),
        }
    }
}

/// The client's arguments, checked and read into a type of yours.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "taken apart in the arguments of handlers")]
pub struct Args<T>(pub T);

impl<T: DeserializeOwned + JsonSchema + Send + 'static> Extract for Args<T> {
    fn extract(cx: &Cx) -> Result<Self, Rejection> {
        cx.decode_arguments().map(Self).map_err(|unreadable| match unreadable {
            Unreadable::Json(error) => Rejection(RejectionKind::Arguments(error)),
            Unreadable::Refused(fault) => Rejection(RejectionKind::Refused(fault)),
        })
    }

    fn requirements(needs: &mut HandlerRequirements) {
        needs.input = Some(Schema::of_input::<T>());
    }
}

/// State that all handlers share, given to the builder by [`ServerBuilder::state`].
///
/// [`ServerBuilder::state`]: crate::server::ServerBuilder::state
///
/// It derefs to the state. Its own field is private, so that `state.0` is that of the state.
#[derive(Debug)]
pub struct State<T>(Arc<T>);

impl<T> Clone for State<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Deref for State<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Send + Sync + 'static> Extract for State<T> {
    fn extract(cx: &Cx) -> Result<Self, Rejection> {
        // `ServerBuilder::build` has checked that it is there; tools that are added later are
        // checked as they come.
        cx.env().state::<T>().map(State).ok_or_else(|| {
            let missing = std::any::type_name::<T>();
            ProtocolError::internal(format_args!(
                "no state of type {missing} was given to the builder"
            ))
            .into()
        })
    }

    fn requirements(needs: &mut HandlerRequirements) {
        needs.states.push((TypeId::of::<T>(), std::any::type_name::<T>()));
    }
}

/// The raw parameters of the request, for handlers that read them themselves.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "taken apart in the arguments of handlers")]
pub struct RawParams(pub RawJson);

impl Extract for RawParams {
    fn extract(cx: &Cx) -> Result<Self, Rejection> {
        cx.raw_params().map(Self).map_err(|error| ProtocolError::internal(error).into())
    }
}

impl Extract for Cx {
    fn extract(cx: &Cx) -> Result<Self, Rejection> {
        Ok(cx.clone())
    }
}

impl Extract for Principal {
    fn extract(cx: &Cx) -> Result<Self, Rejection> {
        Ok(cx.principal().clone())
    }
}

impl Extract for Option<Arc<Session>> {
    fn extract(cx: &Cx) -> Result<Self, Rejection> {
        Ok(cx.session().cloned())
    }
}
