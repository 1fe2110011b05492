//! Resources: what clients can read, by URI or by a template of URIs.

use std::{fmt, future::ready, sync::Arc};

use base64::{Engine, engine::general_purpose::STANDARD};
use outlive_protocol::{Call, CallFuture, MethodResult, Outcome, Principal, ProtocolError};
use outlive_schema::uri_template::UriTemplate;
use outlive_wire::{Annotations, CacheHints, Icon, Meta, ReadResourceResult, ResourceContents};

use super::{
    BuildError, Cx, Error, Result, RoundOutcome,
    access::{Access, access_setters},
    completion::Completers,
    core::Core,
    cx::Arguments,
    durable::{self, Ended, Ending, Inline, Upgrade},
    extract::{HandlerRequirements, RejectionKind},
    handler::Handler,
    output::Returned,
    registry::Entry,
};

/// A handler whose types have been forgotten. Takes the URI that is read.
type ReadHandler = Box<dyn Fn(Cx, String) -> CallFuture + Send + Sync>;

/// What resources and templates have in common.
struct Common {
    handler: ReadHandler,
    needs: HandlerRequirements,
    mime_type: Option<String>,
    access: Access,
    cache: Option<CacheHints>,
}

/// Something clients can read under one URI.
#[must_use]
pub struct Resource {
    info: outlive_wire::Resource,
    common: Common,
}

/// Something clients can read under all URIs of a template, as in `users://{id}`.
#[must_use]
pub struct ResourceTemplate {
    info: outlive_wire::ResourceTemplate,
    common: Common,
    completers: Completers,
}

macro_rules! shared_setters {
    () => {
        /// A name for people.
        pub fn title(mut self, title: impl Into<String>) -> Self {
            self.info.title = Some(title.into());
            self
        }

        /// What it is.
        pub fn description(mut self, description: impl Into<String>) -> Self {
            self.info.description = Some(description.into());
            self
        }

        /// The type of its contents.
        pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
            self.info.mime_type = Some(mime_type.into());
            self
        }

        /// Whom it is for, how much it matters, when it changed.
        pub fn annotations(mut self, annotations: Annotations) -> Self {
            self.info.annotations = Some(annotations);
            self
        }

        /// Adds a picture.
        pub fn icon(mut self, icon: Icon) -> Self {
            self.info.icons.get_or_insert_default().push(icon);
            self
        }

        /// Facts of your own for clients.
        pub fn meta(mut self, meta: Meta) -> Self {
            self.info.meta = Some(meta);
            self
        }

        access_setters!("resource", common.access);

        /// How long clients may keep its contents.
        pub fn cache(mut self, cache: CacheHints) -> Self {
            self.common.cache = Some(cache);
            self
        }
    };
}

impl Resource {
    /// A resource whose contents `handler` returns.
    pub fn new<M: 'static, H>(uri: impl Into<String>, name: impl Into<String>, handler: H) -> Self
    where
        H: Handler<M>,
        H::Output: IntoResourceContents,
    {
        Self { info: outlive_wire::Resource::new(uri, name), common: Common::new(handler) }
    }

    /// A resource that is listed as `info` says.
    pub(super) fn from_info<M: 'static, H>(info: outlive_wire::Resource, handler: H) -> Self
    where
        H: Handler<M>,
        H::Output: IntoResourceContents,
    {
        Self { info, common: Common::new(handler) }
    }

    shared_setters!();

    /// How many bytes it has.
    pub fn size(mut self, bytes: u64) -> Self {
        self.info.size = Some(bytes);
        self
    }

    pub(super) fn into_entry(mut self, core: &Core) -> Result<ResourceEntry, BuildError> {
        let uri = &self.info.uri;
        let bad = |error: &dyn fmt::Display| BuildError::resource(uri, error);
        if !has_scheme(uri) {
            return Err(bad(&"its URI has no scheme; write one such as `notes://today`"));
        }
        core.check_needs(&self.common.needs).map_err(|missing| bad(&missing))?;
        self.common.mime_type.clone_from(&self.info.mime_type);
        Ok(ResourceEntry { info: Arc::new(self.info), common: self.common })
    }
}

impl ResourceTemplate {
    /// A template whose contents `handler` returns; it takes the variables as `Args`.
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
        Self { info, common: Common::new(handler), completers: Completers::default() }
    }

    shared_setters!();

    /// Suggests values for a variable while a user types it.
    pub fn complete<M, H>(mut self, variable: &str, handler: H) -> Self
    where
        H: Handler<M>,
        H::Output: super::completion::IntoCompletion,
    {
        self.completers.add(variable, handler);
        self
    }

    pub(super) fn into_entry(mut self, core: &Core) -> Result<TemplateEntry, BuildError> {
        let text = &self.info.uri_template;
        let bad = |error: &dyn fmt::Display| BuildError::resource(text, error);
        let template = UriTemplate::parse(text).map_err(|error| bad(&error))?;
        core.check_needs(&self.common.needs).map_err(|missing| bad(&missing))?;
        let known = |name: &str| template.variables().iter().any(|known| known == name);
        self.completers.check("variables", known).map_err(|why| bad(&why))?;
        self.common.mime_type.clone_from(&self.info.mime_type);
        Ok(TemplateEntry {
            info: Arc::new(self.info),
            template,
            common: self.common,
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
        let start = move |cx: Cx, uri: String| -> CallFuture {
            match Inline::start(&cx, &handler, Read { uri }) {
                Ok(inline) => Box::pin(inline),
                Err((rejection, _)) => Box::pin(ready(Err(match rejection.0 {
                    RejectionKind::Refused(fault) => fault,
                    RejectionKind::Arguments(error) => {
                        ProtocolError::invalid_params(error.to_string())
                    }
                }))),
            }
        };
        Self {
            handler: Box::new(start),
            needs: H::needs(),
            mime_type: None,
            access: Access::default(),
            cache: None,
        }
    }
}

/// A resource that is registered.
pub(super) struct ResourceEntry {
    pub(super) info: Arc<outlive_wire::Resource>,
    common: Common,
}

/// A template that is registered.
pub(super) struct TemplateEntry {
    pub(super) info: Arc<outlive_wire::ResourceTemplate>,
    template: UriTemplate,
    common: Common,
    pub(super) completers: Completers,
}

impl TemplateEntry {
    /// Whether the template has a variable of this name.
    pub(super) fn has_variable(&self, name: &str) -> bool {
        self.template.variables().iter().any(|known| known == name)
    }
}

impl Entry for ResourceEntry {
    fn key(&self) -> &str {
        &self.info.uri
    }

    fn access(&self) -> &Access {
        &self.common.access
    }
}

impl Entry for TemplateEntry {
    fn key(&self) -> &str {
        &self.info.uri_template
    }

    fn access(&self) -> &Access {
        &self.common.access
    }
}

/// Whether this caller can read the URI: `false` if it does not exist, a fault if it lacks a scope.
pub(super) fn readable(
    core: &Core,
    uri: &str,
    principal: &Principal,
) -> Result<bool, ProtocolError> {
    if let Some(entry) = core.resources.get(uri, principal) {
        return entry.common.access.check(principal).map(|()| true);
    }
    if core.skills.as_ref().is_some_and(|skills| skills.has(uri)) {
        return Ok(true);
    }
    let fits = |entry: &Arc<TemplateEntry>| {
        entry.template.matches(uri).map(|_| entry.common.access.check(principal))
    };
    core.templates.find(principal, fits).map_or(Ok(false), |checked| checked.map(|()| true))
}

/// Reads a resource: by its URI, or by the first template that fits.
pub(super) fn read(core: &Arc<Core>, call: Arc<Call>) -> CallFuture {
    let uri = match call.uri() {
        Ok(uri) => uri.into_owned(),
        Err(fault) => return Box::pin(ready(Err(fault))),
    };
    if let Err(fault) = durable::open(core, &call, &FIRST) {
        return Box::pin(ready(Err(fault)));
    }
    let principal = call.principal();
    if let Some(entry) = core.resources.get(&uri, principal) {
        if let Err(fault) = entry.common.access.check(principal) {
            return Box::pin(ready(Err(fault)));
        }
        let cx = Cx::new(call, Arc::clone(core), Arguments::Text(Arc::default()));
        return keep(
            entry.common.cache,
            entry.common.mime_type.clone(),
            (entry.common.handler)(cx, uri),
        );
    }
    if let Some(contents) = core.skills.as_ref().and_then(|skills| skills.read(&uri)) {
        let result = ReadResourceResult { contents: vec![contents], meta: None };
        return Box::pin(ready(Ok(Outcome::Complete(MethodResult::Resource(result, core.cache)))));
    }
    let found = core
        .templates
        .find(principal, |entry| Some((Arc::clone(entry), entry.template.matches(&uri)?)));
    match found {
        Some((entry, variables)) => {
            if let Err(fault) = entry.common.access.check(principal) {
                return Box::pin(ready(Err(fault)));
            }
            let cx = Cx::new(call, Arc::clone(core), Arguments::Text(Arc::new(variables)));
            keep(
                entry.common.cache,
                entry.common.mime_type.clone(),
                (entry.common.handler)(cx, uri),
            )
        }
        None => Box::pin(ready(Err(ProtocolError::UnknownResource { uri }))),
    }
}

/// Adds to the contents what the registration says about them.
fn keep(cache: Option<CacheHints>, mime_type: Option<String>, work: CallFuture) -> CallFuture {
    if cache.is_none() && mime_type.is_none() {
        return work;
    }
    Box::pin(async move {
        let outcome = work.await?;
        let Outcome::Complete(MethodResult::Resource(mut result, hints)) = outcome else {
            return Ok(outcome);
        };
        for contents in &mut result.contents {
            let slot = match contents {
                ResourceContents::Text(contents) => &mut contents.mime_type,
                ResourceContents::Blob(contents) => &mut contents.mime_type,
                _ => continue,
            };
            if slot.is_none() {
                slot.clone_from(&mime_type);
            }
        }
        Ok(Outcome::Complete(MethodResult::Resource(result, cache.unwrap_or(hints))))
    })
}

/// Makes an outcome of the contents of a resource.
struct Read {
    uri: String,
}

/// Resources have no revisions: what they record is answers.
static FIRST: Upgrade = Upgrade::NONE;

impl Read {
    fn unknown(&self) -> ProtocolError {
        ProtocolError::UnknownResource { uri: self.uri.clone() }
    }
}

impl<R: IntoResourceContents> Ending<R> for Read {
    fn finish(&self, cx: &Cx, returned: R) -> Result<Ended, ProtocolError> {
        match returned.into_read(&self.uri) {
            Ok(Returned::Result(contents)) if contents.is_empty() => Err(self.unknown()),
            Ok(Returned::Result(contents)) => {
                let result = ReadResourceResult { contents, meta: None };
                let answer = MethodResult::Resource(result, cx.core().cache);
                Ok(Ended::Outcome(Outcome::Complete(answer)))
            }
            Ok(Returned::Ask(questions)) => Ok(Ended::Ask(questions)),
            Err(error) => Err(error.into_fault(|| self.unknown())),
        }
    }

    fn give_up(&self, _cx: &Cx, error: Error) -> Result<Outcome, ProtocolError> {
        Err(error.into_fault(|| self.unknown()))
    }

    fn upgrade(&self) -> &Upgrade {
        &FIRST
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

/// Something a resource can return. Text and bytes are of the URI that was read.
#[diagnostic::on_unimplemented(
    message = "a resource cannot return `{Self}`",
    note = "return text, bytes, or `ResourceContents`, each also in a `Result` or `Option`"
)]
pub trait IntoResourceContents: Send + 'static {
    /// Makes the contents. None at all means that there is no such resource.
    ///
    /// # Errors
    ///
    /// When the work failed.
    fn into_contents(self, uri: &str) -> Result<Vec<ResourceContents>>;

    /// Makes the contents, or hands over the questions.
    #[doc(hidden)]
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
            Self::Ask(_) => Err(Error::new("questions where only contents can be")),
        }
    }

    fn into_read(self, uri: &str) -> Result<Returned<Vec<ResourceContents>>> {
        match self {
            Self::Done(contents) => contents.into_read(uri),
            Self::Ask(questions) => Ok(Returned::Ask(questions)),
        }
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
        Ok(vec![ResourceContents::blob(uri, STANDARD.encode(self))])
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

impl<T: serde::Serialize + Send + 'static> IntoResourceContents for super::Json<T> {
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
