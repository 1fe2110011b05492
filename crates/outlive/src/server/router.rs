//! The index of all methods: each is one line here.

use std::{future::ready, sync::Arc};

use outlive_protocol::{
    Call, CallFuture, MethodResult, Outcome, ProtocolError, ServerDescription, era,
};
use outlive_wire::{
    JsonObject, Method, PromptsCapability, ResourcesCapability, ServerCapabilities,
    SetLevelRequestParams, ToolsCapability,
};

use super::{
    completion, core::Core, list, prompt, resource, sessions::remembered, subscription, tasks, tool,
};

/// Starts the work that answers a call.
pub(super) fn route(core: &Arc<Core>, call: Arc<Call>) -> CallFuture {
    if !core.methods.is_empty()
        && let Some(method) = core.methods.get(call.method_name())
    {
        return method(core, call);
    }
    let Some(method) = call.method() else {
        return match core.tasks.is_some() && call.method_name() == era::LIST_ALL_TASKS {
            true => tasks::list_all(core, call),
            false => unknown(&call),
        };
    };
    match method {
        Method::ToolsCall if core.has_tools() => tool::call(core, call),
        Method::ToolsList if core.has_tools() => at_once(list::tools(core, &call)),
        Method::ResourcesRead if core.has_resources() => resource::read(core, call),
        Method::ResourcesList if core.has_resources() => at_once(list::resources(core, &call)),
        Method::ResourceTemplatesList if core.has_resources() => {
            at_once(list::templates(core, &call))
        }
        Method::ResourcesSubscribe if core.has_subscriptions() => {
            remembered(core, call, subscription::subscribe)
        }
        Method::ResourcesUnsubscribe if core.has_subscriptions() => {
            remembered(core, call, |_, call| subscription::unsubscribe(call))
        }
        Method::PromptsGet if core.has_prompts() => prompt::get(core, call),
        Method::PromptsList if core.has_prompts() => at_once(list::prompts(core, &call)),
        Method::Complete if core.has_completions() => completion::complete(core, call),
        Method::TasksGet if core.tasks.is_some() => tasks::get(core, call),
        Method::TasksUpdate if core.tasks.is_some() => tasks::update(core, call),
        Method::TasksCancel if core.tasks.is_some() => tasks::cancel(core, call),
        Method::TasksResult if core.tasks.is_some() => tasks::result(core, call),
        Method::TasksList if core.tasks.is_some() => tasks::list(core, call),
        Method::Listen => subscription::listen(core, call),
        Method::SetLevel if core.logging => remembered(core, call, |_, call| set_level(call)),
        Method::Initialize | Method::Discover => {
            at_once(Ok(MethodResult::Identity(Box::new(core.identity(&call)))))
        }
        Method::Ping => at_once(Ok(MethodResult::Empty)),
        _ => unknown(&call),
    }
}

fn at_once(answer: Result<MethodResult, ProtocolError>) -> CallFuture {
    Box::pin(ready(answer.map(Outcome::Complete)))
}

fn unknown(call: &Call) -> CallFuture {
    Box::pin(ready(Err(ProtocolError::MethodNotFound { name: call.method_name().to_owned() })))
}

fn set_level(call: &Call) -> Result<MethodResult, ProtocolError> {
    let params: SetLevelRequestParams = serde_json::from_str(call.params()).map_err(|error| {
        ProtocolError::invalid_params(format!(
            "`params.level` must be one of the eight levels: {error}"
        ))
    })?;
    if let Some(session) = call.session() {
        session.set_log_level(params.level);
    }
    Ok(MethodResult::Empty)
}

impl Core {
    pub(super) fn has_tools(&self) -> bool {
        self.offers.tools || !self.tools.is_empty()
    }

    pub(super) fn has_resources(&self) -> bool {
        self.offers.resources || !self.resources.is_empty() || !self.templates.is_empty()
    }

    pub(super) fn has_subscriptions(&self) -> bool {
        self.offers.subscriptions && self.has_resources()
    }

    pub(super) fn has_prompts(&self) -> bool {
        self.offers.prompts || !self.prompts.is_empty()
    }

    /// Prompts and templates may have completers; without either there is nothing to complete.
    fn has_completions(&self) -> bool {
        self.has_prompts() || !self.templates.is_empty()
    }

    fn identity(&self, call: &Call) -> ServerDescription {
        let map = |map: &JsonObject| (!map.is_empty()).then(|| map.clone());
        let changes = Some(true);
        // All anonymous callers are one principal, which has no list.
        let lists_tasks = !call.principal().is_anonymous();
        let mut extensions = map(&self.extensions);
        if self.tasks.is_some() && lists_tasks {
            let extensions = extensions.get_or_insert_default();
            extensions.insert(era::TASK_LIST.to_owned(), JsonObject::new().into());
        }
        ServerDescription {
            info: self.profile.info.clone(),
            capabilities: ServerCapabilities {
                tools: self.has_tools().then_some(ToolsCapability { list_changed: changes }),
                resources: self.has_resources().then_some(ResourcesCapability {
                    subscribe: self.offers.subscriptions.then_some(true),
                    list_changed: changes,
                }),
                prompts: self.has_prompts().then_some(PromptsCapability { list_changed: changes }),
                completions: self.has_completions().then(Default::default),
                logging: self.logging.then(Default::default),
                extensions,
                experimental: map(&self.experimental),
                ..ServerCapabilities::default()
            },
            tasks: self.tasks.as_ref().map(|tasks| tasks.offers(lists_tasks)),
            instructions: self.instructions.clone(),
            cache: self.cache,
        }
    }
}
