//! Entries of the server for the definitions of an upstream.

use std::sync::Arc;

use outlive::{
    client::relay::ParamHeaders,
    server::{
        Cx, Durable, Prompt, Resource, ResourceTemplate, Tool,
        catalog::{CatalogHandle, PromptEntry, ResourceEntry, TemplateEntry, ToolEntry},
        durable::Cleanup,
        tasks::{OnCrash, TaskPolicy},
    },
    wire::{self, Meta},
};
use sha2::{Digest as _, Sha256};

use crate::{
    catalog::Digest,
    excerpt::excerpt,
    member::Member,
    names::change_ui_uri,
    relay::{
        CallPolicy, CompletionRoute, PromptRoute, Route, ToolRoute, call_tool, clean_up, complete,
        get_prompt, read_resource,
    },
    settings::{MAX_ATTEMPTS, Policy, ToolSettings, Upstream},
    shared::Shared,
};

/// Makes the entries of one upstream.
pub(crate) struct EntryMaker<'a> {
    pub(crate) shared: &'a Arc<Shared>,
    pub(crate) member: &'a Arc<Member>,
    pub(crate) settings: &'a Upstream,
    pub(crate) handle: &'a CatalogHandle,
}

impl EntryMaker<'_> {
    /// Returns the entry of a tool under the name that clients see. `ui` replaces the URI of its view.
    pub(crate) fn tool(
        &self,
        tool: &wire::Tool,
        digest: Digest,
        shown: &str,
        ui: Option<String>,
    ) -> Option<ToolEntry> {
        let Some(ui) = ui else {
            let make = || self.make_tool(tool, &digest, shown);
            return self.member.entries.tools.get(shown, digest, make);
        };
        // Views differ in the URI, and names have no space.
        self.member.entries.tools.get(&format!("{shown} {ui}"), digest, || {
            let mut tool = tool.clone();
            if let Some(meta) = &mut tool.meta {
                change_ui_uri(&mut meta.0, |_| Some(ui.clone()));
            }
            self.make_tool(&tool, &digest, shown)
        })
    }

    fn make_tool(&self, tool: &wire::Tool, digest: &Digest, shown: &str) -> Option<ToolEntry> {
        let default = ToolSettings::default();
        let settings = self.settings.tools.get(&tool.name).unwrap_or(&default);
        let policy = settings.policy.over(&self.settings.policy);
        let made = self.handle.tool(self.build_tool(tool, digest, shown, settings, &policy, true));
        let made = match (made, policy.task) {
            // Without a store for tasks, calls are never tasks by default.
            (Err(_), None) => {
                self.handle.tool(self.build_tool(tool, digest, shown, settings, &policy, false))
            }
            (made, _) => made,
        };
        self.accepted(made, &tool.name)
    }

    fn build_tool(
        &self,
        tool: &wire::Tool,
        digest: &Digest,
        shown: &str,
        settings: &ToolSettings,
        policy: &Policy,
        with_tasks: bool,
    ) -> Tool {
        let task = match with_tasks {
            true => policy.task.unwrap_or(TaskPolicy::auto()),
            false => TaskPolicy::Never,
        };
        let support = tool.execution.as_ref().and_then(|execution| execution.task_support);
        let definition = self.shown_tool(tool, shown, settings);
        let hints = definition.annotations.clone().unwrap_or_default();
        let is_safe = hints.read_only_hint == Some(true) || hints.idempotent_hint == Some(true);
        let by_hints = if is_safe { OnCrash::Rerun } else { OnCrash::Fail };
        let route = Arc::new(ToolRoute {
            route: self.route(),
            name: tool.name.clone(),
            timeout: policy.timeout,
            max_result: settings.max_result.unwrap_or(self.settings.max_result),
            headers: ParamHeaders::read(&tool.input_schema).unwrap_or_default(),
            may_be_task: task != TaskPolicy::Never,
            policy: CallPolicy {
                on_crash: policy.on_crash.unwrap_or(by_hints),
                max_attempts: policy.max_attempts.unwrap_or(MAX_ATTEMPTS),
                task_support: support,
            },
        });
        let cleaned = Arc::clone(&route);
        let mut tool =
            Tool::relayed(definition, move |cx: Durable| call_tool(cx, Arc::clone(&route)))
                .task(task)
                // The handler itself decides by the journal whether a call is sent again.
                .on_crash(OnCrash::Rerun)
                .upstream(self.settings.name())
                .definition(self.definition_text(digest));
        if task != TaskPolicy::Never {
            tool = tool
                .cleanup(move |task: Cleanup, cx: Cx| clean_up(task, cx, Arc::clone(&cleaned)))
                .promote_at_first_step(false);
        }
        if let Some(scopes) = &policy.scopes {
            tool = tool.scopes(scopes);
        }
        if policy.always_listed == Some(true) {
            tool = tool.always_listed();
        }
        if let Some(approve) = &policy.approve {
            tool = tool.approve(approve.clone());
        }
        if let Some(repeat) = policy.repeat {
            tool = tool.repeat(repeat);
        }
        if let Some(bytes) = policy.max_inline {
            tool = tool.max_inline(bytes);
        }
        if let Some(answers) = &policy.answers {
            tool = tool.answers(answers.iter().copied());
        }
        match policy.tags.clone() {
            Some(tags) => tool.tags(move |arguments| tags(arguments)),
            None => tool,
        }
    }

    /// Returns the definition that clients see.
    fn shown_tool(&self, tool: &wire::Tool, shown: &str, settings: &ToolSettings) -> wire::Tool {
        let mut definition = tool.clone();
        definition.name = shown.to_owned();
        definition.execution = None;
        definition.title = visible_line(definition.title);
        definition.description =
            settings.description.clone().or_else(|| visible_lines(definition.description));
        if settings.read_only.or(settings.destructive).or(settings.idempotent).is_some() {
            let hints = definition.annotations.get_or_insert_default();
            hints.read_only_hint = settings.read_only.or(hints.read_only_hint);
            hints.destructive_hint = settings.destructive.or(hints.destructive_hint);
            hints.idempotent_hint = settings.idempotent.or(hints.idempotent_hint);
        }
        if let Some(hints) = &mut definition.annotations {
            hints.title = visible_line(hints.title.take());
        }
        definition.meta = without_own(definition.meta);
        definition
    }

    /// Returns the text that an approval covers: the definition of the tool, and the program or
    /// address that runs it.
    fn definition_text(&self, digest: &Digest) -> String {
        let mut hash = Sha256::new();
        hash.update(digest);
        hash.update(self.settings.identity());
        format!("upstream {} {:x}", self.settings.name, Hex(hash.finalize().into()))
    }

    /// Returns the entry of a prompt under the name that clients see.
    pub(crate) fn prompt(&self, prompt: &wire::Prompt, shown: &str) -> Option<PromptEntry> {
        self.member.entries.prompts.get(shown, digest_of(prompt), || {
            let mut definition = prompt.clone();
            definition.name = shown.to_owned();
            definition.title = visible_line(definition.title);
            definition.description = visible_lines(definition.description);
            definition.meta = without_own(definition.meta);
            let route = Arc::new(PromptRoute { route: self.route(), name: prompt.name.clone() });
            let completion = Arc::new(CompletionRoute::of_prompt(self.route(), &prompt.name));
            let mut made =
                Prompt::relayed(definition, move |cx: Durable| get_prompt(cx, Arc::clone(&route)))
                    .complete_any(move |cx: Cx| complete(cx, Arc::clone(&completion)));
            if let Some(scopes) = &self.settings.policy.scopes {
                made = made.scopes(scopes);
            }
            if self.settings.policy.always_listed == Some(true) {
                made = made.always_listed();
            }
            self.accepted(self.handle.prompt(made), &prompt.name)
        })
    }

    /// Returns the entry of a resource under the URI that clients see.
    pub(crate) fn resource(&self, resource: &wire::Resource, shown: &str) -> Option<ResourceEntry> {
        self.member.entries.resources.get(shown, digest_of(resource), || {
            let mut definition = resource.clone();
            definition.uri = shown.to_owned();
            definition.name = outlive::text::line(&definition.name).into_owned();
            definition.title = visible_line(definition.title);
            definition.description = visible_lines(definition.description);
            definition.meta = without_own(definition.meta);
            let route = self.route();
            let mut made =
                Resource::relayed(definition, move |cx: Durable| read_resource(cx, route.clone()));
            if let Some(scopes) = &self.settings.policy.scopes {
                made = made.scopes(scopes);
            }
            if self.settings.policy.always_listed == Some(true) {
                made = made.always_listed();
            }
            self.accepted(self.handle.resource(made), &resource.uri)
        })
    }

    /// Returns the entry that reads any URI of the upstream.
    pub(crate) fn any_resource(&self) -> Option<ResourceEntry> {
        let name = self.settings.name.to_string();
        let uri = format!("{name}+:");
        self.resource(&wire::Resource::new(uri.clone(), name), &uri)
    }

    /// Returns the entry of a template under the text that clients see.
    pub(crate) fn template(
        &self,
        template: &wire::ResourceTemplate,
        shown: &str,
    ) -> Option<TemplateEntry> {
        self.member.entries.templates.get(shown, digest_of(template), || {
            let own = &template.uri_template;
            let mut definition = template.clone();
            definition.uri_template = shown.to_owned();
            definition.name = outlive::text::line(&definition.name).into_owned();
            definition.title = visible_line(definition.title);
            definition.description = visible_lines(definition.description);
            definition.meta = without_own(definition.meta);
            let completion = Arc::new(CompletionRoute::of_template(self.route(), own));
            let mut made = ResourceTemplate::relayed(definition)
                .complete_any(move |cx: Cx| complete(cx, Arc::clone(&completion)));
            if let Some(scopes) = &self.settings.policy.scopes {
                made = made.scopes(scopes);
            }
            if self.settings.policy.always_listed == Some(true) {
                made = made.always_listed();
            }
            self.accepted(self.handle.template(made), own)
        })
    }

    fn route(&self) -> Route {
        Route::new(self.shared, self.member)
    }

    /// Leaves out an entry that the server refuses.
    fn accepted<T, E: std::fmt::Display>(&self, made: Result<T, E>, name: &str) -> Option<T> {
        made.inspect_err(|error| {
            let upstream = &*self.settings.name;
            let (name, error) = (excerpt(name), excerpt(&error.to_string()));
            tracing::warn!(upstream, name, error, "left out an entry of an upstream");
        })
        .ok()
    }
}

fn visible_line(text: Option<String>) -> Option<String> {
    text.map(|text| outlive::text::line(&text).into_owned())
}

fn visible_lines(text: Option<String>) -> Option<String> {
    text.map(|text| outlive::text::lines(&text).into_owned())
}

/// Removes the keys of this server's own extensions.
fn without_own(meta: Option<Meta>) -> Option<Meta> {
    let mut meta = meta?;
    meta.0.retain(|key, _| !key.starts_with("dev.outlive/"));
    (!meta.0.is_empty()).then_some(meta)
}

fn digest_of(definition: &impl serde::Serialize) -> Digest {
    Sha256::digest(serde_json::to_vec(definition).unwrap_or_default()).into()
}

struct Hex(Digest);

impl std::fmt::LowerHex for Hex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
