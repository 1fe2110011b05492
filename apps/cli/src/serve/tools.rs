//! Converts the tools of the file to tools of the server, at start and at each reload.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use outlive::{
    server::{
        BuildError, Durable, Server, ServerBuilder, Tool, durable::Cleanup, extract::RawParams,
    },
    wire::ToolAnnotations,
};
use serde::Deserialize;
use serde_json::{Map, Value as Json, value::to_raw_value};

use super::{
    command::Command,
    command_pool::Runner,
    config::{Output, TaskMode, ToolConfig},
};

/// The served tools, by name.
pub(super) struct Tools {
    base: PathBuf,
    runner: Arc<Runner>,
    served: BTreeMap<String, ToolConfig>,
}

/// Changes of a reload.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Changed {
    pub(super) added: Vec<String>,
    pub(super) replaced: Vec<String>,
    pub(super) removed: Vec<String>,
    /// Upstreams that are new, changed or removed.
    pub(super) upstreams: Vec<String>,
}

impl Tools {
    pub(super) fn new(base: PathBuf, runner: Arc<Runner>) -> Self {
        Self { base, runner, served: BTreeMap::new() }
    }

    /// Returns the names of the served tools.
    pub(super) fn names(&self) -> Vec<String> {
        self.served.keys().cloned().collect()
    }

    /// Adds tools to a server that is being built.
    pub(super) fn build(
        &mut self,
        mut builder: ServerBuilder,
        tools: Vec<ToolConfig>,
    ) -> ServerBuilder {
        for config in tools {
            builder = builder.tool(self.tool(&config));
            self.served.insert(config.name.clone(), config);
        }
        builder
    }

    /// Updates the tools of a running server. Running calls keep the old configuration.
    pub(super) fn update(
        &mut self,
        server: &Server,
        tools: Vec<ToolConfig>,
    ) -> Result<Changed, BuildError> {
        let mut changed = Changed::default();
        let wanted: BTreeMap<String, ToolConfig> =
            tools.into_iter().map(|tool| (tool.name.clone(), tool)).collect();
        for (name, config) in &wanted {
            let list = match self.served.get(name) {
                Some(served) if served == config => continue,
                Some(_) => &mut changed.replaced,
                None => &mut changed.added,
            };
            server.add_tool(self.tool(config))?;
            list.push(name.clone());
        }
        for name in self.served.keys().filter(|name| !wanted.contains_key(*name)) {
            server.remove_tool(name);
            changed.removed.push(name.clone());
        }
        self.served = wanted;
        Ok(changed)
    }

    fn tool(&self, config: &ToolConfig) -> Tool {
        let runner = Arc::clone(&self.runner);
        let command = Arc::new(Command::new(config.clone(), &self.base, runner));
        let call = {
            let command = Arc::clone(&command);
            move |cx: Durable, params: RawParams| {
                let command = Arc::clone(&command);
                async move { command.call(cx, arguments(&params)?).await }
            }
        };
        let mut tool = Tool::new(&config.name, call)
            .description(&config.description)
            .annotations(annotations(config))
            .input_schema(raw(&config.input_schema()));
        if let Some(title) = &config.title {
            tool = tool.title(title);
        }
        let shown = config.clone();
        tool = config
            .policy
            .apply(tool)
            .definition(config.definition())
            .command_words(move |arguments| shown.words(arguments));
        if !config.policy.tags.is_empty() {
            let tags = config.policy.tags.clone();
            tool = tool.tags(move |arguments| tags.fill(arguments));
        }
        match &config.output {
            Output::Text => tool = tool.streams_content(),
            Output::Json { schema: Some(schema) } => tool = tool.output_schema(raw(schema)),
            Output::Json { schema: None } => {}
        }
        if config.policy.task == TaskMode::Never {
            return tool;
        }
        // The command of an inline call ends with the call; after a crash, the janitor ends it. So
        // a short command need not become a task, unless its steps must survive.
        tool.promote_at_first_step(config.steps).cleanup(move |task: Cleanup| {
            let command = Arc::clone(&command);
            async move { command.clean_up(task).await }
        })
    }
}

fn annotations(config: &ToolConfig) -> ToolAnnotations {
    let mut hints = ToolAnnotations::default();
    hints.read_only_hint = config.read_only;
    hints.destructive_hint = config.destructive;
    hints.idempotent_hint = config.idempotent;
    hints.open_world_hint = config.open_world;
    hints
}

fn raw(json: &Json) -> outlive::wire::RawJson {
    to_raw_value(json).expect("a JSON value can be serialized")
}

fn arguments(params: &RawParams) -> serde_json::Result<Map<String, Json>> {
    #[derive(Deserialize)]
    struct Params {
        #[serde(default)]
        arguments: Option<Map<String, Json>>,
    }
    Ok(serde_json::from_str::<Params>(params.0.get())?.arguments.unwrap_or_default())
}
