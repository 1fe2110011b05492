//! The index of all methods, one line per method.

use std::{future::ready, sync::Arc};

use outlive_protocol::{
    Call, CallFuture, MethodResult, Outcome, ProtocolError, ServerDescription, era,
};
use outlive_wire::{
    JsonObject, Method, PromptsCapability, ResourcesCapability, ServerCapabilities,
    SetLevelRequestParams, ToolsCapability,
};

use crate::server::{
    dispatch::{
        completion, core::ServerCore, lists, prompts, resources, results, sessions::remembered,
        subscriptions, tools,
    },
    register::entry::{PromptEntry, ResourceEntry, TemplateEntry, ToolEntry},
    tasks::{list, methods, result},
};

/// Starts the handler of a call.
pub(crate) fn route(core: &Arc<ServerCore>, call: Arc<Call>) -> CallFuture {
    if !core.hooks.methods.is_empty()
        && let Some(method) = core.hooks.methods.get(call.method_name())
    {
        return method(&core.env, call);
    }
    let Some(method) = call.method() else {
        return match core.env.tasks.is_some() && call.method_name() == era::LIST_ALL_TASKS {
            true => list::list_all(&core.env, call),
            false => unknown(&call),
        };
    };
    match method {
        Method::ToolsCall if core.has_tools() => tools::call(core, call),
        Method::ToolsList if core.has_tools() => lists::page::<ToolEntry>(core, call),
        Method::ResourcesRead if core.reads_resources(&call) => resources::read(core, call),
        Method::ResourcesList if core.reads_resources(&call) => {
            lists::page::<ResourceEntry>(core, call)
        }
        Method::ResourceTemplatesList if core.reads_resources(&call) => {
            lists::page::<TemplateEntry>(core, call)
        }
        Method::ResourcesSubscribe if core.has_subscriptions() => {
            subscriptions::subscribe(core, call)
        }
        Method::ResourcesUnsubscribe if core.has_subscriptions() => {
            remembered(core, call, |_, call| subscriptions::unsubscribe(call))
        }
        Method::PromptsGet if core.has_prompts() => prompts::get(core, call),
        Method::PromptsList if core.has_prompts() => lists::page::<PromptEntry>(core, call),
        Method::Complete if core.has_completions() => completion::complete(core, call),
        Method::TasksGet if core.env.tasks.is_some() => methods::get(&core.env, call),
        Method::TasksUpdate if core.env.tasks.is_some() => methods::update(&core.env, call),
        Method::TasksCancel if core.env.tasks.is_some() => methods::cancel(&core.env, call),
        Method::TasksResult if core.env.tasks.is_some() => result::result(&core.env, call),
        Method::TasksList if core.env.tasks.is_some() => list::list(&core.env, call),
        Method::Listen => subscriptions::listen(core, call),
        Method::SetLevel if core.env.logging => remembered(core, call, |_, call| set_level(call)),
        Method::Initialize | Method::Discover => {
            at_once(Ok(MethodResult::Identity(Box::new(core.identity(&call)))))
        }
        Method::Ping => at_once(Ok(MethodResult::Empty)),
        _ => unknown(&call),
    }
}

fn at_once(result: Result<MethodResult, ProtocolError>) -> CallFuture {
    Box::pin(ready(result.map(Outcome::Complete)))
}

fn unknown(call: &Call) -> CallFuture {
    Box::pin(ready(Err(ProtocolError::MethodNotFound { name: call.method_name().to_owned() })))
}

fn set_level(call: &Call) -> Result<MethodResult, ProtocolError> {
    let params: SetLevelRequestParams = serde_json::from_str(call.params()).map_err(|error| {
        ProtocolError::invalid_params(format!(
            "`params.level` must be one of the eight log levels: {error}"
        ))
    })?;
    if let Some(session) = call.session() {
        session.set_log_level(params.level);
    }
    Ok(MethodResult::Empty)
}

impl ServerCore {
    /// Returns whether the client of a call can read resources, including stored results.
    fn reads_resources(&self, call: &Call) -> bool {
        self.has_resources() || results::are_listed(self, call)
    }

    fn identity(&self, call: &Call) -> ServerDescription {
        let map = |map: &JsonObject| (!map.is_empty()).then(|| map.clone());
        let changes = Some(true);
        // Anonymous callers share one principal, so they get no list of tasks.
        let lists_tasks = !call.principal().is_anonymous();
        let mut extensions = map(&self.description.extensions);
        if self.env.tasks.is_some() && lists_tasks {
            let extensions = extensions.get_or_insert_default();
            extensions.insert(era::TASK_LIST.to_owned(), JsonObject::new().into());
        }
        ServerDescription {
            info: self.env.profile.info.clone(),
            capabilities: ServerCapabilities {
                tools: self.has_tools().then_some(ToolsCapability { list_changed: changes }),
                resources: self.reads_resources(call).then_some(ResourcesCapability {
                    subscribe: self.description.offers.subscriptions.then_some(true),
                    list_changed: changes,
                }),
                prompts: self.has_prompts().then_some(PromptsCapability { list_changed: changes }),
                completions: self.has_completions().then(Default::default),
                logging: self.env.logging.then(Default::default),
                extensions,
                experimental: map(&self.description.experimental),
                ..ServerCapabilities::default()
            },
            tasks: self.env.tasks.as_ref().map(|tasks| tasks.offers(lists_tasks)),
            instructions: self.instructions(call),
            cache: self.env.cache,
        }
    }

    /// Returns the instructions of the server, then those of its catalog.
    fn instructions(&self, call: &Call) -> Option<String> {
        let own = self.description.instructions.clone();
        let further = self.catalog.as_ref().and_then(|catalog| catalog.items.instructions(call));
        match (own, further) {
            (Some(own), Some(further)) => Some(format!("{own}\n\n{further}")),
            (own, further) => own.or(further),
        }
    }
}
