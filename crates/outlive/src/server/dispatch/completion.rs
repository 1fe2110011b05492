//! `completion/complete`: finds the completer of an argument, and runs it.

use std::{future::ready, sync::Arc};

use outlive_protocol::{Call, CallFuture, ProtocolError};
use outlive_wire::CompletionReference;

use crate::server::{
    dispatch::core::ServerCore,
    extract::cx::{Arguments, Cx},
    register::{
        completers::{Completer, finish, read},
        registry::Entry as _,
    },
};

/// Completes an argument. An argument without a completer gets no suggestions. An unknown prompt,
/// template or argument is an error.
pub(crate) fn complete(core: &Arc<ServerCore>, call: Arc<Call>) -> CallFuture {
    match find(core, &call) {
        Ok(Some(completer)) => completer(Cx::plain(call, &core.env, Arguments::Params)),
        Ok(None) => Box::pin(ready(finish(Vec::<String>::new()))),
        Err(error) => Box::pin(ready(Err(error))),
    }
}

fn find(core: &ServerCore, call: &Call) -> Result<Option<Completer>, ProtocolError> {
    let params = read(call)?;
    let argument = &params.argument.name;
    let unknown =
        |what: &str| ProtocolError::invalid_params(format!("{what} has no argument `{argument}`"));
    match &params.reference {
        CompletionReference::Prompt(prompt) => {
            let name = &prompt.name;
            let entry = core.catalog.prompts.get(name, call.principal()).ok_or_else(|| {
                ProtocolError::UnknownPrompt {
                    name: name.clone(),
                    suggestion: core.catalog.prompts.close_to(name, call.principal()),
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
            let template = core.catalog.templates.get(uri, call.principal());
            if let Some(entry) = &template {
                entry.access().check(call.principal())?;
            }
            match template {
                Some(entry) if entry.has_variable(argument) => Ok(entry.completers.get(argument)),
                Some(_) => Err(unknown(&format!("resource template `{uri}`"))),
                None if core.catalog.resources.get(uri, call.principal()).is_some() => Ok(None),
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
