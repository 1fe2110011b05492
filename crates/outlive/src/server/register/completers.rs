//! Completion of prompt arguments and template variables.

use std::{collections::BTreeMap, fmt, future::ready, sync::Arc};

use outlive_protocol::{
    Call, CallFuture, MethodResult, Outcome, ProtocolError, RelayedKind, RelayedResult,
};
use outlive_wire::{CompleteRequestParams, CompleteResult, Completion};

use crate::server::{
    error::{Error, Result},
    extract::{
        cx::Cx,
        extractor::{Extract, Rejection, RejectionKind},
        handler::Handler,
        response::Returned,
    },
};

/// Maximum number of values in one completion, as the specification defines it.
const MOST: usize = 100;

pub(crate) type Completer = Arc<dyn Fn(Cx) -> CallFuture + Send + Sync>;

/// The completers of one prompt or template, by argument.
#[derive(Clone, Default)]
pub(crate) struct Completers {
    by_argument: BTreeMap<String, Completer>,
    /// Completer of all other arguments.
    any: Option<Completer>,
    /// Argument whose completer takes `Durable`, which is not allowed.
    asks: Option<String>,
}

impl Completers {
    pub(crate) fn add<M, H>(&mut self, argument: &str, handler: H)
    where
        H: Handler<M>,
        H::Output: IntoCompletion,
    {
        if H::needs().durable {
            self.asks = Some(argument.to_owned());
        }
        self.by_argument.insert(argument.to_owned(), completer(handler));
    }

    /// Sets the completer of all arguments that have none of their own.
    pub(crate) fn add_any<M, H>(&mut self, handler: H)
    where
        H: Handler<M>,
        H::Output: IntoCompletion,
    {
        if H::needs().durable {
            self.asks = Some("*".to_owned());
        }
        self.any = Some(completer(handler));
    }

    /// Returns whether every argument has a completer, even one that the definition does not name.
    pub(crate) fn has_any(&self) -> bool {
        self.any.is_some()
    }

    /// Checks that each completer belongs to a known argument and that none takes `Durable`.
    pub(crate) fn check(&self, of: &str, known: impl Fn(&str) -> bool) -> Result<(), String> {
        if let Some(asks) = &self.asks {
            return Err(format!(
                "the completer of `{asks}` takes `Durable`; only tools, prompts and resources can"
            ));
        }
        match self.by_argument.keys().find(|name| !known(name)) {
            None => Ok(()),
            Some(unknown) => Err(format!("the completer of `{unknown}` matches none of its {of}")),
        }
    }

    pub(crate) fn get(&self, argument: &str) -> Option<Completer> {
        self.by_argument.get(argument).or(self.any.as_ref()).cloned()
    }
}

fn completer<M, H>(handler: H) -> Completer
where
    H: Handler<M>,
    H::Output: IntoCompletion,
{
    Arc::new(move |cx: Cx| -> CallFuture {
        match handler.start(&cx) {
            Ok(future) => Box::pin(async move { finish(future.await) }),
            Err(rejection) => Box::pin(ready(Err(match rejection.0 {
                RejectionKind::Refused(fault) => fault,
                RejectionKind::Arguments(error) => ProtocolError::invalid_params(error.to_string()),
            }))),
        }
    })
}

/// The text that a user has typed so far. Completers take it as an argument.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CompletionInput {
    /// Prefix of the value.
    pub value: String,
    /// Values of the other arguments so far.
    pub others: BTreeMap<String, String>,
}

impl Extract for CompletionInput {
    fn extract(cx: &Cx) -> Result<Self, Rejection> {
        let params = read(cx.call())?;
        let others = params.context.and_then(|context| context.arguments).unwrap_or_default();
        Ok(Self { value: params.argument.value, others })
    }
}

pub(crate) fn read(call: &Call) -> Result<CompleteRequestParams, ProtocolError> {
    serde_json::from_str(call.params())
        .map_err(|error| ProtocolError::invalid_params(format!("`params`: {error}")))
}

pub(crate) fn finish(suggested: impl IntoCompletion) -> Result<Outcome, ProtocolError> {
    let suggested = suggested.into_completion();
    let mut values =
        match suggested.map_err(|error| error.into_fault(|| ProtocolError::Internal))? {
            Returned::Result(values) => values,
            Returned::Relayed(result) => {
                let result = MethodResult::Relayed(result, RelayedKind::Completion);
                return Ok(Outcome::Complete(result));
            }
            Returned::Ask(_) => {
                return Err(ProtocolError::internal("a completer returned input requests"));
            }
        };
    let total = values.len();
    values.truncate(MOST);
    let completion = Completion { values, total: Some(total as u64), has_more: Some(total > MOST) };
    Ok(Outcome::Complete(MethodResult::Completion(CompleteResult { completion, meta: None })))
}

/// A type that a completer can return: suggestions, best first.
#[diagnostic::on_unimplemented(
    message = "a completer cannot return `{Self}`",
    note = "return a `Vec<String>`, also in a `Result`"
)]
pub trait IntoCompletion: Send + 'static {
    /// Converts the value into suggestions.
    ///
    /// # Errors
    ///
    /// Returns an error if the completer failed.
    fn into_suggestions(self) -> Result<Vec<String>>;

    /// Converts the value into suggestions, or into the result of another server.
    ///
    /// # Errors
    ///
    /// Returns an error if the completer failed.
    fn into_completion(self) -> Result<Returned<Vec<String>>>
    where
        Self: Sized,
    {
        self.into_suggestions().map(Returned::Result)
    }
}

impl IntoCompletion for RelayedResult {
    fn into_suggestions(self) -> Result<Vec<String>> {
        Ok(self.to_typed::<CompleteResult>()?.completion.values)
    }

    fn into_completion(self) -> Result<Returned<Vec<String>>> {
        Ok(Returned::Relayed(Box::new(self)))
    }
}

impl IntoCompletion for Vec<String> {
    fn into_suggestions(self) -> Result<Vec<String>> {
        Ok(self)
    }
}

impl IntoCompletion for Vec<&'static str> {
    fn into_suggestions(self) -> Result<Vec<String>> {
        Ok(self.into_iter().map(str::to_owned).collect())
    }
}

impl<T: IntoCompletion, E: Into<Error> + Send + 'static> IntoCompletion for Result<T, E> {
    fn into_suggestions(self) -> Result<Vec<String>> {
        self.map_err(Into::into)?.into_suggestions()
    }

    fn into_completion(self) -> Result<Returned<Vec<String>>> {
        self.map_err(Into::into)?.into_completion()
    }
}

impl fmt::Debug for Completers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.by_argument.keys()).finish()
    }
}
