//! The trait [`Extract`] and the built-in extractors.

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

/// A type that a handler can take as an argument.
///
/// Implement it for your own types to extract them from a [`Cx`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of a handler",
    note = "arguments from the client are wrapped: `Args<{Self}>`; shared state is `State<{Self}>`"
)]
pub trait Extract: Sized + Send + 'static {
    /// Extracts the argument from the context.
    ///
    /// # Errors
    ///
    /// Returns an error if the call lacks the required data.
    fn extract(cx: &Cx) -> Result<Self, Rejection>;

    /// Adds the requirements of the argument. Called when the handler is registered.
    fn requirements(_needs: &mut HandlerRequirements) {}
}

/// Reason why an argument could not be extracted.
#[derive(Debug)]
pub struct Rejection(pub(crate) RejectionKind);

#[derive(Debug)]
pub(crate) enum RejectionKind {
    /// The client's arguments do not match the type.
    Arguments(serde_json::Error),
    /// The request is invalid or not allowed.
    Refused(ProtocolError),
}

impl From<ProtocolError> for Rejection {
    fn from(fault: ProtocolError) -> Self {
        Self(RejectionKind::Refused(fault))
    }
}

/// Requirements of a handler's arguments, collected when the handler is registered.
#[derive(Debug, Default)]
pub struct HandlerRequirements {
    pub(crate) input: Option<Result<Schema, SchemaError>>,
    pub(crate) states: Vec<(TypeId, &'static str)>,
    /// Whether the handler takes `Durable`, so that it can request input and be replayed.
    pub(crate) durable: bool,
    /// Whether the handler emits partial results without being replayed.
    pub(crate) emits: bool,
}

impl HandlerRequirements {
    /// Checks that the server has the shared state that the arguments need.
    pub(crate) fn check(&self, env: &Env) -> Result<(), String> {
        match self.states.iter().find(|(id, _)| !env.states.contains_key(id)) {
            None => Ok(()),
            Some((_, name)) => Err(format!(
                "its handler takes State<{name}>, but the builder has no such state; add it with `.state(…)`"
            )),
        }
    }
}

/// The client's arguments, validated and decoded as `T`.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "handlers destructure it in their arguments")]
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

/// Shared state of all handlers, added with [`ServerBuilder::state`].
///
/// [`ServerBuilder::state`]: crate::server::ServerBuilder::state
///
/// It dereferences to the state. Its field is private, so that `state.0` is a field of the state.
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
        // `ServerBuilder::build` and `Server::add_tool` have checked that the state exists.
        cx.env().state::<T>().map(State).ok_or_else(|| {
            let missing = std::any::type_name::<T>();
            ProtocolError::internal(format_args!("the builder has no state of type {missing}"))
                .into()
        })
    }

    fn requirements(needs: &mut HandlerRequirements) {
        needs.states.push((TypeId::of::<T>(), std::any::type_name::<T>()));
    }
}

/// The raw parameters of the request.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "handlers destructure it in their arguments")]
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
