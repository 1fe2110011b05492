//! The builder of a prompt: messages that a user selects and fills in.

use std::{fmt, future::ready, sync::Arc};

use outlive_protocol::{
    CallFuture, MethodResult, Outcome, ProtocolError, RelayedKind, RelayedResult,
};
use outlive_schema::Schema;
use outlive_wire::{ContentBlock, GetPromptResult, Icon, Meta, PromptArgument, PromptMessage};
use serde_json::Value;

use crate::server::{
    access::{Access, access_setters},
    build_error::BuildError,
    env::environment::Env,
    error::{Error, Result},
    exec::{
        executable::{ExecPolicy, Executable, StartHandler},
        handler_run::{Finish, Finished, HandlerRun},
    },
    extract::{
        cx::Cx,
        extractor::{HandlerRequirements, RejectionKind},
        handler::Handler,
        response::Returned,
    },
    register::{
        completers::{Completers, IntoCompletion},
        registry::Entry,
    },
    run::{input_request_set::RoundOutcome, replay_policy::ReplayPolicy},
};
/// A prompt: its name, the handler that returns its messages, and its description for users.
///
/// The fields of the handler's `Args` type are the arguments. Clients send strings, which are
/// converted to numbers, booleans and enums if the field has such a type.
#[must_use]
pub struct Prompt {
    info: outlive_wire::Prompt,
    /// Whether the definition is that of another server, which validates its arguments itself.
    relays: bool,
    handler: StartHandler,
    needs: HandlerRequirements,
    completers: Completers,
    access: Access,
}

impl Prompt {
    /// Returns a prompt whose messages `handler` returns.
    pub fn new<M: 'static, H>(name: impl Into<String>, handler: H) -> Self
    where
        H: Handler<M>,
        H::Output: IntoPromptResult,
    {
        let handler = Arc::new(handler);
        let start = move |cx: &Cx| -> CallFuture {
            match HandlerRun::start(cx, &handler, Filled) {
                Ok(run) => Box::pin(run),
                Err((rejection, _)) => Box::pin(ready(Err(match rejection.0 {
                    RejectionKind::Refused(fault) => fault,
                    RejectionKind::Arguments(error) => {
                        ProtocolError::invalid_params(error.to_string())
                    }
                }))),
            }
        };
        Self {
            info: outlive_wire::Prompt::new(name),
            relays: false,
            handler: Box::new(start),
            needs: H::needs(),
            completers: Completers::default(),
            access: Access::default(),
        }
    }

    /// Returns a prompt with the definition of another server. Clients receive the definition as it
    /// is, and arguments are not checked here.
    pub fn relayed<M: 'static, H>(definition: outlive_wire::Prompt, handler: H) -> Self
    where
        H: Handler<M>,
        H::Output: IntoPromptResult,
    {
        Self { info: definition, relays: true, ..Self::new("", handler) }
    }

    /// Sets the display name.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.info.title = Some(title.into());
        self
    }

    /// Sets the description.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.info.description = Some(description.into());
        self
    }

    /// Adds an icon.
    pub fn icon(mut self, icon: Icon) -> Self {
        self.info.icons.get_or_insert_default().push(icon);
        self
    }

    /// Sets custom metadata for clients.
    pub fn meta(mut self, meta: Meta) -> Self {
        self.info.meta = Some(meta);
        self
    }

    /// Adds an argument explicitly, for handlers without an `Args` type.
    pub fn argument(mut self, argument: PromptArgument) -> Self {
        self.info.arguments.get_or_insert_default().push(argument);
        self
    }

    /// Sets the completer that suggests values for an argument.
    pub fn complete<M, H>(mut self, argument: &str, handler: H) -> Self
    where
        H: Handler<M>,
        H::Output: IntoCompletion,
    {
        self.completers.add(argument, handler);
        self
    }

    /// Sets the completer of all arguments that have none of their own, even of those that the
    /// definition does not name.
    pub fn complete_any<M, H>(mut self, handler: H) -> Self
    where
        H: Handler<M>,
        H::Output: IntoCompletion,
    {
        self.completers.add_any(handler);
        self
    }

    access_setters!("prompt", access);

    pub(crate) fn register(mut self, env: &Env) -> Result<RegisteredPrompt, BuildError> {
        let name = self.info.name.clone();
        let bad = |error: &dyn fmt::Display| BuildError::prompt(&name, error);
        if name.is_empty() {
            return Err(bad(&"its name is empty"));
        }
        self.needs.check(env).map_err(|missing| bad(&missing))?;
        if let Some(schema) = self.needs.input.take() {
            let arguments = arguments_of(&schema.map_err(|error| bad(&error))?);
            if self.info.arguments.is_none() && !arguments.is_empty() {
                self.info.arguments = Some(arguments);
            }
        }
        let known =
            |name: &str| self.info.arguments.iter().flatten().any(|argument| argument.name == name);
        self.completers.check("arguments", known).map_err(|why| bad(&why))?;
        Ok(RegisteredPrompt {
            info: Arc::new(self.info),
            relays: self.relays,
            exec: Arc::new(Executable {
                name,
                policy: ExecPolicy::of_reader(&self.needs),
                start: self.handler,
            }),
            completers: self.completers,
            access: self.access,
        })
    }
}

/// A validated prompt.
pub(crate) struct RegisteredPrompt {
    pub(crate) info: Arc<outlive_wire::Prompt>,
    /// Whether another server checks the arguments.
    pub(crate) relays: bool,
    pub(crate) exec: Arc<Executable>,
    pub(crate) completers: Completers,
    access: Access,
}

impl Entry for RegisteredPrompt {
    fn key(&self) -> &str {
        &self.info.name
    }

    fn access(&self) -> &Access {
        &self.access
    }
}

/// Converts the return value of a prompt's handler into an outcome.
struct Filled;

impl<R: IntoPromptResult> Finish<R> for Filled {
    fn finish(&self, cx: &Cx, returned: R) -> Result<Finished, ProtocolError> {
        match returned.into_filled() {
            Ok(Returned::Result(result)) => {
                Ok(Finished::Outcome(Outcome::Complete(MethodResult::Prompt(result))))
            }
            Ok(Returned::Relayed(result)) => {
                let result = MethodResult::Relayed(result, RelayedKind::Prompt);
                Ok(Finished::Outcome(Outcome::Complete(result)))
            }
            Ok(Returned::Ask(requests)) => Ok(Finished::Input(requests)),
            Err(error) => Err(refused(cx, error)),
        }
    }

    fn give_up(&self, cx: &Cx, error: Error) -> Result<Outcome, ProtocolError> {
        Err(refused(cx, error))
    }

    fn replay(&self) -> &ReplayPolicy {
        &ReplayPolicy::NONE
    }
}

fn refused(cx: &Cx, error: Error) -> ProtocolError {
    error.into_fault(|| match cx.call().name() {
        Ok(name) => ProtocolError::UnknownPrompt { name: name.into_owned(), suggestion: None },
        Err(fault) => fault,
    })
}

/// Returns the prompt arguments for the properties of a schema.
fn arguments_of(schema: &Schema) -> Vec<PromptArgument> {
    let schema: Value = serde_json::from_str(schema.text().get()).unwrap_or_default();
    let required = |name: &str| {
        schema
            .get("required")
            .and_then(Value::as_array)
            .is_some_and(|names| names.iter().any(|known| known == name))
    };
    let text =
        |property: &Value, key: &str| property.get(key).and_then(Value::as_str).map(str::to_owned);
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return Vec::new();
    };
    properties
        .iter()
        .map(|(name, property)| {
            let mut argument = PromptArgument::new(name).with_required(required(name));
            argument.title = text(property, "title");
            argument.description = text(property, "description");
            argument
        })
        .collect()
}

/// A type that a prompt can return.
#[diagnostic::on_unimplemented(
    message = "a prompt cannot return `{Self}`",
    note = "return text, `PromptMessage`s or a `GetPromptResult`, each also in a `Result`"
)]
pub trait IntoPromptResult: Send + 'static {
    /// Converts the value into a prompt result.
    ///
    /// # Errors
    ///
    /// Returns an error if the handler failed.
    fn into_prompt(self) -> Result<GetPromptResult>;

    /// Converts the value into a prompt result or input requests.
    ///
    /// # Errors
    ///
    /// Returns an error if the handler failed.
    fn into_filled(self) -> Result<Returned<GetPromptResult>>
    where
        Self: Sized,
    {
        self.into_prompt().map(Returned::Result)
    }
}

impl<T: IntoPromptResult> IntoPromptResult for RoundOutcome<T> {
    fn into_prompt(self) -> Result<GetPromptResult> {
        match self {
            Self::Done(prompt) => prompt.into_prompt(),
            Self::Ask(_) => Err(Error::new("input requests are not allowed here; return a prompt")),
        }
    }

    fn into_filled(self) -> Result<Returned<GetPromptResult>> {
        match self {
            Self::Done(prompt) => prompt.into_filled(),
            Self::Ask(questions) => Ok(Returned::Ask(questions)),
        }
    }
}

impl IntoPromptResult for RelayedResult {
    fn into_prompt(self) -> Result<GetPromptResult> {
        Ok(self.to_typed()?)
    }

    fn into_filled(self) -> Result<Returned<GetPromptResult>> {
        Ok(Returned::Relayed(Box::new(self)))
    }
}

impl IntoPromptResult for GetPromptResult {
    fn into_prompt(self) -> Result<GetPromptResult> {
        Ok(self)
    }
}

impl IntoPromptResult for Vec<PromptMessage> {
    fn into_prompt(self) -> Result<GetPromptResult> {
        Ok(GetPromptResult::new(self))
    }
}

impl IntoPromptResult for PromptMessage {
    fn into_prompt(self) -> Result<GetPromptResult> {
        Ok(GetPromptResult::new([self]))
    }
}

impl IntoPromptResult for String {
    fn into_prompt(self) -> Result<GetPromptResult> {
        PromptMessage::user(ContentBlock::text(self)).into_prompt()
    }
}

impl IntoPromptResult for &'static str {
    fn into_prompt(self) -> Result<GetPromptResult> {
        self.to_owned().into_prompt()
    }
}

impl<T: IntoPromptResult, E: Into<Error> + Send + 'static> IntoPromptResult for Result<T, E> {
    fn into_prompt(self) -> Result<GetPromptResult> {
        self.map_err(Into::into)?.into_prompt()
    }

    fn into_filled(self) -> Result<Returned<GetPromptResult>> {
        self.map_err(Into::into)?.into_filled()
    }
}

impl fmt::Debug for Prompt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prompt").field("name", &self.info.name).finish_non_exhaustive()
    }
}
