//! A catalog with the definitions of another server.

use std::sync::{
    Arc, Mutex, OnceLock,
    atomic::{AtomicBool, Ordering},
};

use outlive::{
    server::{
        Cx, Durable, Prompt, Resource, ResourceTemplate, Result, Server, ServerBuilder, Tool,
        catalog::{
            Call, Catalog, CatalogHandle, CatalogPage, Lookup, PageRequest, PromptEntry,
            ResourceEntry, TemplateEntry, ToolEntry,
        },
        response::RelayedResult,
    },
    wire,
};
use serde_json::{Value, json};

/// The items of another server. `Found` at once, or after a while.
#[derive(Default)]
pub(super) struct Foreign {
    handle: OnceLock<CatalogHandle>,
    pub(super) is_cold: AtomicBool,
    pub(super) tools: Mutex<Vec<ToolEntry>>,
    /// Tools that only this principal has.
    pub(super) private: Mutex<Vec<(String, ToolEntry)>>,
    prompts: Mutex<Vec<PromptEntry>>,
    resources: Mutex<Vec<ResourceEntry>>,
    templates: Mutex<Vec<TemplateEntry>>,
    /// Subscriptions and their ends: `+ann mem://a`.
    pub(super) subscriptions: Mutex<Vec<String>>,
}

impl Foreign {
    pub(super) fn handle(&self) -> &CatalogHandle {
        self.handle.get().expect("the server is built")
    }

    /// Adds a tool at the end of the list.
    pub(super) fn add(&self, tool: Tool) {
        let entry = self.handle().tool(tool).unwrap();
        self.tools.lock().unwrap().push(entry);
    }

    fn answer<T: Send + 'static>(&self, item: Option<T>) -> Lookup<T> {
        match (self.is_cold.load(Ordering::Relaxed), item) {
            (false, Some(item)) => Lookup::Found(item),
            (false, None) => Lookup::Unknown,
            (true, item) => Lookup::Pending(Box::pin(async move {
                tokio::task::yield_now().await;
                Ok(item)
            })),
        }
    }

    fn page<T: Clone + Send + 'static>(
        &self,
        all: Vec<T>,
        name: impl Fn(&T) -> &str,
        request: &PageRequest,
    ) -> Lookup<CatalogPage<T>> {
        let after = request.after.as_deref();
        let mut rest =
            all.into_iter().skip_while(|item| after.is_some_and(|after| name(item) <= after));
        let items: Vec<T> = rest.by_ref().take(request.max).collect();
        let last = items.last().map(|item| name(item).to_owned());
        let next = last.filter(|_| rest.next().is_some());
        self.answer(Some(CatalogPage::new(items, next)))
    }

    /// Returns the tools of a call's principal, by name.
    fn tools_of(&self, call: &Call) -> Vec<ToolEntry> {
        let mut tools = self.tools.lock().unwrap().clone();
        let private = self.private.lock().unwrap();
        let key = call.principal().key();
        tools
            .extend(private.iter().filter(|(owner, _)| owner == key).map(|(_, tool)| tool.clone()));
        tools.sort_by(|a, b| a.definition().name.cmp(&b.definition().name));
        tools
    }
}

impl Catalog for Foreign {
    fn attach(&self, handle: CatalogHandle) {
        assert!(self.handle.set(handle.clone()).is_ok(), "attached once");
        let prompt = Prompt::relayed(definition(json!({"name": "brief"})), relay_prompt);
        let prompt = prompt.complete_any(relay_completion);
        self.prompts.lock().unwrap().push(handle.prompt(prompt).unwrap());
        let info = definition(json!({"uri": "far://a", "name": "a"}));
        let resource = Resource::relayed(info, relay_contents);
        self.resources.lock().unwrap().push(handle.resource(resource).unwrap());
        let info = definition(json!({"uriTemplate": "far://{not a variable}", "name": "t"}));
        let template = ResourceTemplate::relayed(info).complete_any(relay_completion);
        self.templates.lock().unwrap().push(handle.template(template).unwrap());
    }

    fn tool(&self, call: &Arc<Call>, name: &str) -> Lookup<ToolEntry> {
        let tools = self.tools_of(call);
        self.answer(tools.into_iter().find(|tool| tool.definition().name == name))
    }

    fn prompt(&self, _: &Arc<Call>, name: &str) -> Lookup<PromptEntry> {
        let prompts = self.prompts.lock().unwrap().clone();
        self.answer(prompts.into_iter().find(|prompt| prompt.definition().name == name))
    }

    fn resource(&self, _: &Arc<Call>, uri: &str) -> Lookup<ResourceEntry> {
        let resources = self.resources.lock().unwrap().clone();
        self.answer(resources.into_iter().next().filter(|_| uri.starts_with("far://")))
    }

    fn template(&self, _: &Arc<Call>, text: &str) -> Lookup<TemplateEntry> {
        let templates = self.templates.lock().unwrap().clone();
        self.answer(templates.into_iter().find(|entry| entry.definition().uri_template == text))
    }

    fn tools(&self, call: &Arc<Call>, request: PageRequest) -> Lookup<CatalogPage<ToolEntry>> {
        self.page(self.tools_of(call), |tool| &tool.definition().name, &request)
    }

    fn prompts(&self, _: &Arc<Call>, request: PageRequest) -> Lookup<CatalogPage<PromptEntry>> {
        let all = self.prompts.lock().unwrap().clone();
        self.page(all, |prompt| &prompt.definition().name, &request)
    }

    fn resources(&self, _: &Arc<Call>, request: PageRequest) -> Lookup<CatalogPage<ResourceEntry>> {
        let all = self.resources.lock().unwrap().clone();
        self.page(all, |resource| &resource.definition().uri, &request)
    }

    fn templates(&self, _: &Arc<Call>, request: PageRequest) -> Lookup<CatalogPage<TemplateEntry>> {
        let all = self.templates.lock().unwrap().clone();
        self.page(all, |template| &template.definition().uri_template, &request)
    }

    fn subscribed(&self, principal: &str, uri: &str) {
        self.subscriptions.lock().unwrap().push(format!("+{principal} {uri}"));
    }

    fn unsubscribed(&self, principal: &str, uri: &str) {
        self.subscriptions.lock().unwrap().push(format!("-{principal} {uri}"));
    }
}

/// Returns a definition as another server sends it.
pub(super) fn definition<T: serde::de::DeserializeOwned>(json: Value) -> T {
    serde_json::from_value(json).unwrap()
}

/// Returns the definition of a tool.
pub(super) fn tool_definition(name: &str) -> wire::Tool {
    definition(json!({
        "name": name,
        "title": "A tool of another server",
        "inputSchema": {"type": "object", "properties": {"n": {"type": "integer", "x-mine": 1}}},
    }))
}

/// Returns the raw arguments as a text of the result, with members that no version names.
pub(super) async fn relay(cx: Durable) -> Result<RelayedResult> {
    let text = serde_json::to_string(cx.call().arguments()?)?;
    let result = format!(
        r#"{{"content":[{{"type":"text","text":{text},"_meta":{{"far/x":1.0}}}}],"isError":false,"_meta":{{"far/y":[1.50]}}}}"#
    );
    Ok(RelayedResult::new(result)?)
}

async fn relay_prompt(cx: Durable) -> Result<RelayedResult> {
    let text = serde_json::to_string(cx.call().arguments()?)?;
    let result = format!(
        r#"{{"messages":[{{"role":"user","content":{{"type":"text","text":{text}}}}}],"x-far":1.0}}"#
    );
    Ok(RelayedResult::new(result)?)
}

async fn relay_contents(cx: Cx) -> Result<RelayedResult> {
    let uri = serde_json::to_string(&cx.call().uri()?)?;
    Ok(RelayedResult::new(format!(
        r#"{{"contents":[{{"uri":{uri},"text":"far"}}],"ttlMs":7,"cacheScope":"public"}}"#
    ))?)
}

async fn relay_completion(cx: Cx) -> Result<RelayedResult> {
    assert!(cx.call().params().contains("argument"));
    Ok(RelayedResult::new(r#"{"completion":{"values":["far"],"hasMore":false}}"#)?)
}

/// Returns a server with this catalog, which has the tool `far`.
pub(super) fn serve(foreign: &Arc<Foreign>, builder: ServerBuilder) -> Server {
    let server = builder.catalog(Arc::clone(foreign) as _).build().unwrap();
    foreign.add(Tool::relayed(tool_definition("far"), relay));
    server
}

pub(super) fn server(foreign: &Arc<Foreign>) -> Server {
    serve(foreign, Server::builder("near", "1"))
}

/// Returns a catalog whose items are in memory, and one whose items are not.
pub(super) fn both() -> [Arc<Foreign>; 2] {
    let cold = Foreign::default();
    cold.is_cold.store(true, Ordering::Relaxed);
    [Arc::default(), Arc::new(cold)]
}
