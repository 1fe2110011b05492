//! `prompts/get`: finds the prompt, checks its arguments, and executes it.

use std::{future::ready, sync::Arc};

use outlive_protocol::{Call, CallFuture, ProtocolError};

use crate::server::{
    dispatch::core::ServerCore,
    exec::{executable::Invocation, execute::execute},
    extract::cx::Arguments,
    register::{prompt::RegisteredPrompt, registry::Entry as _},
    text_args::TextArgs,
};

/// Starts a prompt.
pub(crate) fn get(core: &Arc<ServerCore>, call: Arc<Call>) -> CallFuture {
    let started = find(core, &call).and_then(|(prompt, texts)| {
        let invocation = Invocation { target: Arc::clone(&prompt.exec), permits: None };
        execute(&core.env, call, invocation, Arguments::Text(Arc::new(texts)))
    });
    started.unwrap_or_else(|error| Box::pin(ready(Err(error))))
}

fn find(
    core: &ServerCore,
    call: &Call,
) -> Result<(Arc<RegisteredPrompt>, TextArgs), ProtocolError> {
    let name = call.name()?;
    let Some(entry) = core.catalog.prompts.get(&name, call.principal()) else {
        let suggestion = core.catalog.prompts.close_to(&name, call.principal());
        return Err(ProtocolError::UnknownPrompt { name: name.into_owned(), suggestion });
    };
    entry.access().check(call.principal())?;
    let texts: std::collections::BTreeMap<String, String> = serde_json::from_str(call.arguments()?)
        .map_err(|error| {
            ProtocolError::invalid_params(format!("`params.arguments` must be strings: {error}"))
        })?;
    let missing =
        entry.info.arguments.iter().flatten().find(|argument| {
            argument.required == Some(true) && !texts.contains_key(&argument.name)
        });
    if let Some(missing) = missing {
        return Err(ProtocolError::invalid_params(format!(
            "the argument `{}` is missing",
            missing.name
        )));
    }
    Ok((entry, texts.into_iter().collect()))
}
