//! `completion/complete`: finds the completer of an argument, and runs it.

use std::{future::ready, sync::Arc};

use outlive_protocol::{Call, CallFuture, ProtocolError};
use outlive_wire::{CompleteRequestParams, CompletionReference};

use crate::server::{
    dispatch::core::ServerCore,
    extract::cx::{Arguments, Cx},
    register::{
        catalog::Lookup,
        completers::{Completer, finish, read},
        prompt::RegisteredPrompt,
        registry::Entry as _,
        resource::RegisteredTemplate,
    },
};

/// Completes an argument. An argument without a completer gets no suggestions. An unknown prompt,
/// template or argument is an error.
pub(crate) fn complete(core: &Arc<ServerCore>, call: Arc<Call>) -> CallFuture {
    let started = read(&call).and_then(|params| match find(core, &call, &params) {
        Lookup::Found(target) => start(core, call, &params, Some(target)),
        Lookup::Unknown => start(core, call, &params, None),
        Lookup::Pending(pending) => {
            let core = Arc::clone(core);
            Ok(Box::pin(async move {
                let target = pending.await?;
                start(&core, call, &params, target)?.await
            }) as CallFuture)
        }
    });
    started.unwrap_or_else(|error| Box::pin(ready(Err(error))))
}

/// The item whose argument is completed.
enum Target {
    Prompt(Arc<RegisteredPrompt>),
    Template(Arc<RegisteredTemplate>),
}

/// Finds the item that the reference names.
fn find(core: &ServerCore, call: &Arc<Call>, params: &CompleteRequestParams) -> Lookup<Target> {
    match &params.reference {
        CompletionReference::Prompt(prompt) => core.prompt(call, &prompt.name).map(Target::Prompt),
        CompletionReference::Resource(resource) => {
            core.template(call, &resource.uri).map(Target::Template)
        }
        _ => Lookup::Unknown,
    }
}

fn start(
    core: &ServerCore,
    call: Arc<Call>,
    params: &CompleteRequestParams,
    target: Option<Target>,
) -> Result<CallFuture, ProtocolError> {
    let completer = match target {
        Some(target) => target.completer(&call, &params.argument.name)?,
        None => missing(core, &call, &params.reference)?,
    };
    Ok(match completer {
        Some(completer) => completer(Cx::plain(call, &core.env, Arguments::Params)),
        None => Box::pin(ready(finish(Vec::<String>::new()))),
    })
}

impl Target {
    fn completer(&self, call: &Call, argument: &str) -> Result<Option<Completer>, ProtocolError> {
        let (access, completers) = match self {
            Self::Prompt(prompt) => (prompt.access(), &prompt.completers),
            Self::Template(template) => (template.access(), &template.completers),
        };
        access.check(call.principal())?;
        match completers.has_any() || self.has_argument(argument) {
            true => Ok(completers.get(argument)),
            false => {
                let what = match self {
                    Self::Prompt(prompt) => format!("prompt `{}`", prompt.key()),
                    Self::Template(template) => format!("resource template `{}`", template.key()),
                };
                Err(ProtocolError::invalid_params(format!("{what} has no argument `{argument}`")))
            }
        }
    }

    fn has_argument(&self, name: &str) -> bool {
        match self {
            Self::Prompt(prompt) => {
                prompt.info.arguments.iter().flatten().any(|known| known.name == name)
            }
            Self::Template(template) => template.has_variable(name),
        }
    }
}

/// Returns the error of an unknown reference. A resource without variables has no suggestions.
fn missing(
    core: &ServerCore,
    call: &Call,
    reference: &CompletionReference,
) -> Result<Option<Completer>, ProtocolError> {
    let principal = call.principal();
    match reference {
        CompletionReference::Prompt(prompt) => {
            let name = prompt.name.clone();
            let suggestion = core.registered.prompts.close_to(&name, principal);
            Err(ProtocolError::UnknownPrompt { name, suggestion })
        }
        CompletionReference::Resource(resource) => {
            match core.registered.resources.get(&resource.uri, principal) {
                Some(_) => Ok(None),
                None => Err(ProtocolError::invalid_params(format!(
                    "unknown resource template `{}`",
                    resource.uri
                ))),
            }
        }
        _ => {
            Err(ProtocolError::invalid_params("`ref.type` must be `ref/prompt` or `ref/resource`"))
        }
    }
}
