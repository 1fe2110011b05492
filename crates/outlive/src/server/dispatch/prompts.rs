//! `prompts/get`: finds the prompt, checks its arguments, and executes it.

use std::{future::ready, sync::Arc};

use outlive_protocol::{Call, CallFuture, ProtocolError};

use crate::server::{
    dispatch::core::ServerCore,
    exec::{executable::Invocation, execute::execute},
    extract::cx::Arguments,
    register::{catalog::Lookup, prompt::RegisteredPrompt, registry::Entry as _},
    text_args::TextArgs,
};

/// Starts a prompt.
pub(crate) fn get(core: &Arc<ServerCore>, call: Arc<Call>) -> CallFuture {
    let found = call.name().map(|name| core.prompt(&call, &name));
    let started = match found {
        Ok(Lookup::Found(prompt)) => start(core, call, &prompt),
        Ok(Lookup::Unknown) => Err(unknown(core, &call)),
        Ok(Lookup::Pending(pending)) => {
            let core = Arc::clone(core);
            Ok(Box::pin(async move {
                match pending.await? {
                    Some(prompt) => start(&core, call, &prompt)?.await,
                    None => Err(unknown(&core, &call)),
                }
            }) as CallFuture)
        }
        Err(error) => Err(error),
    };
    started.unwrap_or_else(|error| Box::pin(ready(Err(error))))
}

/// Returns the error of a call with an unknown prompt.
fn unknown(core: &ServerCore, call: &Call) -> ProtocolError {
    let name = call.name().unwrap_or_default().into_owned();
    let suggestion = core.registered.prompts.close_to(&name, call.principal());
    ProtocolError::UnknownPrompt { name, suggestion }
}

fn start(
    core: &ServerCore,
    call: Arc<Call>,
    prompt: &RegisteredPrompt,
) -> Result<CallFuture, ProtocolError> {
    prompt.access().check(call.principal())?;
    let arguments = match prompt.relays {
        true => Arguments::Json,
        false => Arguments::Text(Arc::new(check_arguments(&call, prompt)?)),
    };
    let invocation = Invocation { target: Arc::clone(&prompt.exec), permits: None };
    execute(&core.env, call, invocation, arguments)
}

/// Returns the arguments, which are strings, if none is missing.
fn check_arguments(call: &Call, prompt: &RegisteredPrompt) -> Result<TextArgs, ProtocolError> {
    let texts: std::collections::BTreeMap<String, String> = serde_json::from_str(call.arguments()?)
        .map_err(|error| {
            ProtocolError::invalid_params(format!("`params.arguments` must be strings: {error}"))
        })?;
    let missing =
        prompt.info.arguments.iter().flatten().find(|argument| {
            argument.required == Some(true) && !texts.contains_key(&argument.name)
        });
    if let Some(missing) = missing {
        return Err(ProtocolError::invalid_params(format!(
            "the argument `{}` is missing",
            missing.name
        )));
    }
    Ok(texts.into_iter().collect())
}
