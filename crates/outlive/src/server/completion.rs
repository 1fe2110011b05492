//! Suggestions for the arguments of prompts and the variables of templates.

use std::{collections::BTreeMap, fmt, future::ready, sync::Arc};

use outlive_protocol::{Call, CallFuture, MethodResult, Outcome, ProtocolError};
use outlive_wire::{CompleteRequestParams, CompleteResult, Completion, CompletionReference};

use super::{
    Cx, Error, Result,
    core::Core,
    cx::Arguments,
    extract::{Extract, Rejection, RejectionKind},
    handler::Handler,
    registry::Entry as _,
};

/// The specification's bound on what one answer may hold.
const MOST: usize = 100;

type Completer = Arc<dyn Fn(Cx) -> CallFuture + Send + Sync>;

/// The completers of one prompt or template, by argument.
#[derive(Clone, Default)]
pub(super) struct Completers {
    by_argument: BTreeMap<String, Completer>,
    /// An argument whose completer wants to ask, which it cannot.
    asks: Option<String>,
}

impl Completers {
    pub(super) fn add<M, H>(&mut self, argument: &str, handler: H)
    where
        H: Handler<M>,
        H::Output: IntoCompletion,
    {
        let complete = move |cx: Cx| -> CallFuture {
            match handler.start(&cx) {
                Ok(future) => Box::pin(async move { finish(future.await) }),
                Err(rejection) => Box::pin(ready(Err(match rejection.0 {
                    RejectionKind::Refused(fault) => fault,
                    RejectionKind::Arguments(error) => {
                        ProtocolError::invalid_params(error.to_string())
                    }
                }))),
            }
        };
        if H::needs().durable {
            self.asks = Some(argument.to_owned());
        }
        self.by_argument.insert(argument.to_owned(), Arc::new(complete));
    }

    /// Checks that all complete something, and that none wants to ask.
    pub(super) fn check(&self, of: &str, known: impl Fn(&str) -> bool) -> Result<(), String> {
        if let Some(asks) = &self.asks {
            return Err(format!(
                "it completes `{asks}` with a handler that may ask; only tools, prompts and resources can"
            ));
        }
        match self.by_argument.keys().find(|name| !known(name)) {
            None => Ok(()),
            Some(unknown) => Err(format!("it completes `{unknown}`, which is none of its {of}")),
        }
    }

    fn get(&self, argument: &str) -> Option<Completer> {
        self.by_argument.get(argument).cloned()
    }
}

/// What a user has typed so far: take it as an argument of a completer.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CompletionInput {
    /// The beginning of the value.
    pub value: String,
    /// The arguments that have been filled in already.
    pub others: BTreeMap<String, String>,
}

impl Extract for CompletionInput {
    fn extract(cx: &Cx) -> Result<Self, Rejection> {
        let params = read(cx.call())?;
        let others = params.context.and_then(|context| context.arguments).unwrap_or_default();
        Ok(Self { value: params.argument.value, others })
    }
}

/// Answers `completion/complete`. An argument without a completer has no suggestions; an unknown
/// prompt, template or argument is refused.
pub(super) fn complete(core: &Arc<Core>, call: Arc<Call>) -> CallFuture {
    match find(core, &call) {
        Ok(Some(completer)) => completer(Cx::new(call, Arc::clone(core), Arguments::Params)),
        Ok(None) => Box::pin(ready(finish(Vec::<String>::new()))),
        Err(fault) => Box::pin(ready(Err(fault))),
    }
}

fn find(core: &Core, call: &Call) -> Result<Option<Completer>, ProtocolError> {
    let params = read(call)?;
    let argument = &params.argument.name;
    let unknown =
        |what: &str| ProtocolError::invalid_params(format!("{what} has no argument `{argument}`"));
    match &params.reference {
        CompletionReference::Prompt(prompt) => {
            let name = &prompt.name;
            let entry = core.prompts.get(name, call.principal()).ok_or_else(|| {
                ProtocolError::UnknownPrompt {
                    name: name.clone(),
                    suggestion: core.prompts.close_to(name, call.principal()),
                }
            })?;
            entry.access().check(call.principal())?;
            let known = entry.info.arguments.iter().flatten().any(|known| known.name == *argument);
            known
                .then(|| entry.completers.get(argument))
                .ok_or_else(|| unknown(&format!("prompt `{name}`")))
        }
        CompletionReference::Resource(resource) => {
            let uri = &resource.uri;
            let template = core.templates.get(uri, call.principal());
            if let Some(entry) = &template {
                entry.access().check(call.principal())?;
            }
            match template {
                Some(entry) if entry.has_variable(argument) => Ok(entry.completers.get(argument)),
                Some(_) => Err(unknown(&format!("resource template `{uri}`"))),
                None if core.resources.get(uri, call.principal()).is_some() => Ok(None),
                None => {
                    Err(ProtocolError::invalid_params(format!("unknown resource template `{uri}`")))
                }
            }
        }
        _ => {
            Err(ProtocolError::invalid_params("`ref.type` must be `ref/prompt` or `ref/resource`"))
        }
    }
}

fn read(call: &Call) -> Result<CompleteRequestParams, ProtocolError> {
    serde_json::from_str(call.params())
        .map_err(|error| ProtocolError::invalid_params(format!("`params`: {error}")))
}

fn finish(suggested: impl IntoCompletion) -> Result<Outcome, ProtocolError> {
    let mut values = suggested
        .into_suggestions()
        .map_err(|error| error.into_fault(|| ProtocolError::Internal))?;
    let total = values.len();
    values.truncate(MOST);
    let completion = Completion { values, total: Some(total as u64), has_more: Some(total > MOST) };
    Ok(Outcome::Complete(MethodResult::Completion(CompleteResult { completion, meta: None })))
}

/// Something a completer can return: suggestions, best first.
#[diagnostic::on_unimplemented(
    message = "a completer cannot return `{Self}`",
    note = "return a `Vec<String>`, also in a `Result`"
)]
pub trait IntoCompletion: Send + 'static {
    /// Makes the suggestions.
    ///
    /// # Errors
    ///
    /// When the work failed.
    fn into_suggestions(self) -> Result<Vec<String>>;
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
}

impl fmt::Debug for Completers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.by_argument.keys()).finish()
    }
}
