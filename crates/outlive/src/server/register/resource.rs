//! The builders of resources and resource templates.

use std::{fmt, future::ready, sync::Arc};

use outlive_protocol::{
    CallFuture, MethodResult, Outcome, ProtocolError, RelayedKind, RelayedResult,
};
use outlive_schema::uri_template::UriTemplate;
use outlive_wire::{Annotations, CacheHints, Icon, Meta, ReadResourceResult, ResourceContents};

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
        response::{Json, Returned},
    },
    register::{
        completers::{Completers, IntoCompletion},
        registry::Entry,
    },
    run::{input_request_set::RoundOutcome, replay_policy::ReplayPolicy},
    text_args::TextArgs,
};

/// Fields that resources and templates share.
struct Common {
    handler: StartHandler,
    needs: HandlerRequirements,
    access: Access,
    cache: Option<CacheHints>,
}

/// A resource that clients read under one URI.
#[must_use]
pub struct Resource {
    info: outlive_wire::Resource,
    /// Whether the definition is that of another server.
    relays: bool,
    common: Common,
}

/// A resource that clients read under all URIs of a template, such as `users://{id}`.
#[must_use]
pub struct ResourceTemplate {
    info: outlive_wire::ResourceTemplate,
    /// Whether the definition is that of another server.
    relays: bool,
    common: Common,
    completers: Completers,
}

macro_rules! shared_setters {
    () => {
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

        /// Sets the MIME type of the contents.
        pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
            self.info.mime_type = Some(mime_type.into());
            self
        }

        /// Sets the audience, the priority and the modification time.
        pub fn annotations(mut self, annotations: Annotations) -> Self {
            self.info.annotations = Some(annotations);
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

        access_setters!("resource", common.access);

        /// Sets how long clients may cache the contents.
        pub fn cache(mut self, cache: CacheHints) -> Self {
            self.common.cache = Some(cache);
            self
        }
    };
}

impl Resource {
    /// Returns a resource whose contents `handler` returns.
    pub fn new<M: 'static, H>(uri: impl Into<String>, name: impl Into<String>, handler: H) -> Self
    where
        H: Handler<M>,
        H::Output: IntoResourceContents,
    {
        Self::from_info(outlive_wire::Resource::new(uri, name), handler)
    }

    /// Returns a resource with the definition of another server. Clients receive the definition as
    /// it is.
    pub fn relayed<M: 'static, H>(definition: outlive_wire::Resource, handler: H) -> Self
    where
        H: Handler<M>,
        H::Output: IntoResourceContents,
    {
        Self { relays: true, ..Self::from_info(definition, handler) }
    }

    /// Returns a resource with the given list entry.
    pub(crate) fn from_info<M: 'static, H>(info: outlive_wire::Resource, handler: H) -> Self
    where
        H: Handler<M>,
        H::Output: IntoResourceContents,
    {
        Self { info, relays: false, common: Common::new(handler) }
    }

    shared_setters!();

    /// Sets the size of the contents in bytes.
    pub fn size(mut self, bytes: u64) -> Self {
        self.info.size = Some(bytes);
        self
    }

    pub(crate) fn register(self, env: &Env) -> Result<RegisteredResource, BuildError> {
        let uri = &self.info.uri;
        let bad = |error: &dyn fmt::Display| BuildError::resource(uri, error);
        if !self.relays && !has_scheme(uri) {
            return Err(bad(&"its URI has no scheme; add one, as in `notes://today`"));
        }
        self.common.needs.check(env).map_err(|missing| bad(&missing))?;
        let offered = self.common.register(uri.clone(), self.info.mime_type.clone());
        Ok(RegisteredResource { info: Arc::new(self.info), offered })
    }
}

impl ResourceTemplate {
    /// Returns a template whose contents `handler` returns. The handler takes the variables as
    /// `Args`.
    pub fn new<M: 'static, H>(
        template: impl Into<String>,
        name: impl Into<String>,
        handler: H,
    ) -> Self
    where
        H: Handler<M>,
        H::Output: IntoResourceContents,
    {
        let info = outlive_wire::ResourceTemplate::new(template, name);
        let (common, completers) = (Common::new(handler), Completers::default());
        Self { info, relays: false, common, completers }
    }

    /// Returns a template with the definition of another server, for a
    /// [`Catalog`](crate::server::catalog::Catalog): clients list and complete it. The catalog finds
    /// the resources of its URIs.
    pub fn relayed(definition: outlive_wire::ResourceTemplate) -> Self {
        async fn none() -> Option<String> {
            None
        }
        let (common, completers) = (Common::new(none), Completers::default());
        Self { info: definition, relays: true, common, completers }
    }

    shared_setters!();

    /// Sets the completer that suggests values for a variable.
    pub fn complete<M, H>(mut self, variable: &str, handler: H) -> Self
    where
        H: Handler<M>,
        H::Output: IntoCompletion,
    {
        self.completers.add(variable, handler);
        self
    }

    /// Sets the completer of all variables that have none of their own, even of those that the
    /// template does not name.
    pub fn complete_any<M, H>(mut self, handler: H) -> Self
    where
        H: Handler<M>,
        H::Output: IntoCompletion,
    {
        self.completers.add_any(handler);
        self
    }

    pub(crate) fn register(self, env: &Env) -> Result<RegisteredTemplate, BuildError> {
        let text = &self.info.uri_template;
        let bad = |error: &dyn fmt::Display| BuildError::resource(text, error);
        let template = match UriTemplate::parse(text) {
            Err(error) if !self.relays => return Err(bad(&error)),
            parsed => parsed.ok().filter(|_| !self.relays),
        };
        self.common.needs.check(env).map_err(|missing| bad(&missing))?;
        let known = |name: &str| has_variable(template.as_ref(), name);
        self.completers.check("variables", known).map_err(|why| bad(&why))?;
        let offered = self.common.register(text.clone(), self.info.mime_type.clone());
        Ok(RegisteredTemplate {
            info: Arc::new(self.info),
            template,
            offered,
            completers: self.completers,
        })
    }
}

impl Common {
    fn new<M: 'static, H>(handler: H) -> Self
    where
        H: Handler<M>,
        H::Output: IntoResourceContents,
    {
        let handler = Arc::new(handler);
        let start = move |cx: &Cx| -> CallFuture {
            let uri = match cx.call().uri() {
                Ok(uri) => uri.into_owned(),
                Err(error) => return Box::pin(ready(Err(error))),
            };
            match HandlerRun::start(cx, &handler, Read { uri }) {
                Ok(run) => Box::pin(run),
                Err((rejection, _)) => Box::pin(ready(Err(match rejection.0 {
                    RejectionKind::Refused(fault) => fault,
                    RejectionKind::Arguments(error) => {
                        ProtocolError::invalid_params(error.to_string())
                    }
                }))),
            }
        };
        Self { handler: Box::new(start), needs: H::needs(), access: Access::default(), cache: None }
    }
}

impl Common {
    fn register(self, name: String, mime_type: Option<String>) -> Offered {
        let policy = ExecPolicy::of_reader(&self.needs);
        let exec = Arc::new(Executable { name, policy, start: self.handler });
        Offered { exec, mime_type, access: self.access, cache: self.cache }
    }
}

/// Fields that validated resources and templates share.
pub(crate) struct Offered {
    pub(crate) exec: Arc<Executable>,
    /// MIME type of contents that have none.
    pub(crate) mime_type: Option<String>,
    pub(crate) access: Access,
    /// Cache hints of the contents.
    pub(crate) cache: Option<CacheHints>,
}

/// A validated resource.
pub(crate) struct RegisteredResource {
    pub(crate) info: Arc<outlive_wire::Resource>,
    pub(crate) offered: Offered,
}

/// A validated resource template.
pub(crate) struct RegisteredTemplate {
    pub(crate) info: Arc<outlive_wire::ResourceTemplate>,
    /// `None` for a template of another server: its URIs have entries of their own.
    template: Option<UriTemplate>,
    pub(crate) offered: Offered,
    pub(crate) completers: Completers,
}

impl RegisteredTemplate {
    /// Returns whether the template has a variable with this name.
    pub(crate) fn has_variable(&self, name: &str) -> bool {
        has_variable(self.template.as_ref(), name)
    }

    /// Returns the variables of a URI that the template matches.
    pub(crate) fn matches(&self, uri: &str) -> Option<TextArgs> {
        self.template.as_ref()?.matches(uri)
    }
}

fn has_variable(template: Option<&UriTemplate>, name: &str) -> bool {
    template.is_some_and(|template| template.variables().iter().any(|known| known == name))
}

impl Entry for RegisteredResource {
    fn key(&self) -> &str {
        &self.info.uri
    }

    fn access(&self) -> &Access {
        &self.offered.access
    }
}

impl Entry for RegisteredTemplate {
    fn key(&self) -> &str {
        &self.info.uri_template
    }

    fn access(&self) -> &Access {
        &self.offered.access
    }
}

/// Converts the return value of a resource's handler into an outcome.
struct Read {
    uri: String,
}

impl Read {
    fn unknown(&self) -> ProtocolError {
        ProtocolError::UnknownResource { uri: self.uri.clone() }
    }
}

impl<R: IntoResourceContents> Finish<R> for Read {
    fn finish(&self, cx: &Cx, returned: R) -> Result<Finished, ProtocolError> {
        match returned.into_read(&self.uri) {
            Ok(Returned::Result(contents)) if contents.is_empty() => Err(self.unknown()),
            Ok(Returned::Result(contents)) => {
                let result = ReadResourceResult { contents, meta: None };
                let answer = MethodResult::Resource(result, cx.env().cache);
                Ok(Finished::Outcome(Outcome::Complete(answer)))
            }
            Ok(Returned::Relayed(result)) => {
                let result = MethodResult::Relayed(result, RelayedKind::Resource(cx.env().cache));
                Ok(Finished::Outcome(Outcome::Complete(result)))
            }
            Ok(Returned::Ask(requests)) => Ok(Finished::Input(requests)),
            Err(error) => Err(error.into_fault(|| self.unknown())),
        }
    }

    fn give_up(&self, _cx: &Cx, error: Error) -> Result<Outcome, ProtocolError> {
        Err(error.into_fault(|| self.unknown()))
    }

    fn replay(&self) -> &ReplayPolicy {
        &ReplayPolicy::NONE
    }
}

fn has_scheme(uri: &str) -> bool {
    uri.split_once(':').is_some_and(|(scheme, _)| {
        scheme.starts_with(|first: char| first.is_ascii_alphabetic())
            && scheme
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
    })
}

/// A type that a resource can return. Text and bytes get the URI of the request.
#[diagnostic::on_unimplemented(
    message = "a resource cannot return `{Self}`",
    note = "return text, bytes, or `ResourceContents`, each also in a `Result` or `Option`"
)]
pub trait IntoResourceContents: Send + 'static {
    /// Converts the value into contents. An empty list means that the resource does not exist.
    ///
    /// # Errors
    ///
    /// Returns an error if the handler failed.
    fn into_contents(self, uri: &str) -> Result<Vec<ResourceContents>>;

    /// Converts the value into contents or input requests.
    ///
    /// # Errors
    ///
    /// Returns an error if the handler failed.
    fn into_read(self, uri: &str) -> Result<Returned<Vec<ResourceContents>>>
    where
        Self: Sized,
    {
        self.into_contents(uri).map(Returned::Result)
    }
}

impl<T: IntoResourceContents> IntoResourceContents for RoundOutcome<T> {
    fn into_contents(self, uri: &str) -> Result<Vec<ResourceContents>> {
        match self {
            Self::Done(contents) => contents.into_contents(uri),
            Self::Ask(_) => Err(Error::new("input requests are not allowed here; return contents")),
        }
    }

    fn into_read(self, uri: &str) -> Result<Returned<Vec<ResourceContents>>> {
        match self {
            Self::Done(contents) => contents.into_read(uri),
            Self::Ask(questions) => Ok(Returned::Ask(questions)),
        }
    }
}

impl IntoResourceContents for RelayedResult {
    fn into_contents(self, _uri: &str) -> Result<Vec<ResourceContents>> {
        Ok(self.to_typed::<ReadResourceResult>()?.contents)
    }

    fn into_read(self, _uri: &str) -> Result<Returned<Vec<ResourceContents>>> {
        Ok(Returned::Relayed(Box::new(self)))
    }
}

impl IntoResourceContents for String {
    fn into_contents(self, uri: &str) -> Result<Vec<ResourceContents>> {
        Ok(vec![ResourceContents::text(uri, self)])
    }
}

impl IntoResourceContents for &'static str {
    fn into_contents(self, uri: &str) -> Result<Vec<ResourceContents>> {
        Ok(vec![ResourceContents::text(uri, self)])
    }
}

impl IntoResourceContents for Vec<u8> {
    fn into_contents(self, uri: &str) -> Result<Vec<ResourceContents>> {
        Ok(vec![ResourceContents::blob(uri, self)])
    }
}

impl IntoResourceContents for ResourceContents {
    fn into_contents(self, _uri: &str) -> Result<Vec<ResourceContents>> {
        Ok(vec![self])
    }
}

impl IntoResourceContents for Vec<ResourceContents> {
    fn into_contents(self, _uri: &str) -> Result<Vec<ResourceContents>> {
        Ok(self)
    }
}

impl<T: serde::Serialize + Send + 'static> IntoResourceContents for Json<T> {
    fn into_contents(self, uri: &str) -> Result<Vec<ResourceContents>> {
        let text = serde_json::to_string(&self.0)?;
        Ok(vec![ResourceContents::text(uri, text).with_mime_type("application/json")])
    }
}

impl<T: IntoResourceContents, E: Into<Error> + Send + 'static> IntoResourceContents
    for Result<T, E>
{
    fn into_contents(self, uri: &str) -> Result<Vec<ResourceContents>> {
        self.map_err(Into::into)?.into_contents(uri)
    }

    fn into_read(self, uri: &str) -> Result<Returned<Vec<ResourceContents>>> {
        self.map_err(Into::into)?.into_read(uri)
    }
}

impl<T: IntoResourceContents> IntoResourceContents for Option<T> {
    fn into_contents(self, uri: &str) -> Result<Vec<ResourceContents>> {
        self.map_or_else(|| Ok(Vec::new()), |contents| contents.into_contents(uri))
    }
}

impl fmt::Debug for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resource").field("uri", &self.info.uri).finish_non_exhaustive()
    }
}

impl fmt::Debug for ResourceTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResourceTemplate")
            .field("template", &self.info.uri_template)
            .finish_non_exhaustive()
    }
}
