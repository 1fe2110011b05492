//! Paginated lists as streams.

use std::{
    collections::{HashSet, VecDeque},
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use futures_core::Stream;
use outlive_wire::{Method, Prompt, RawJson, Resource, ResourceTemplate, Tool};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use super::{
    attempt::{Wanted, read},
    cached::Cached,
    core::Core,
    error::{ClientError, Error, Result},
    link::Link,
    send::Boxed,
};

/// Entries of a list. Fetches the next page when it is needed.
///
/// Also a [`Stream`]. Ends with an error if the list exceeds the limits or repeats a cursor.
#[must_use = "nothing is requested until the list is read"]
pub struct Paginated<T> {
    core: Arc<Core>,
    method: Method,
    read: VecDeque<T>,
    fetching: Option<Boxed<'static, Page<T>>>,
    cursor: Cursor,
    seen: HashSet<String>,
    pages: usize,
    entries: usize,
}

#[derive(Debug)]
enum Cursor {
    First,
    At(String),
    End,
}

/// One page.
#[derive(Debug)]
pub(crate) struct Page<T> {
    entries: Vec<T>,
    next: Option<String>,
}

impl<T> fmt::Debug for Paginated<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Paginated").field("method", &self.method).finish_non_exhaustive()
    }
}

impl<T: ListItem> Paginated<T> {
    pub(crate) fn new(core: &Arc<Core>, method: Method) -> Self {
        Self {
            core: Arc::clone(core),
            method,
            read: VecDeque::new(),
            fetching: None,
            cursor: Cursor::First,
            seen: HashSet::new(),
            pages: 0,
            entries: 0,
        }
    }

    /// Returns the next entry, or `None` at the end and after an error.
    pub async fn next(&mut self) -> Option<Result<T>> {
        std::future::poll_fn(|cx| self.poll_entry(cx)).await
    }

    /// Returns all entries.
    ///
    /// # Errors
    ///
    /// If a page cannot be fetched, or the list exceeds the limits.
    pub async fn collect(mut self) -> Result<Vec<T>> {
        let mut entries = Vec::new();
        while let Some(entry) = self.next().await {
            entries.push(entry?);
        }
        Ok(entries)
    }

    fn poll_entry(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<T>>> {
        loop {
            if let Some(entry) = self.read.pop_front() {
                return Poll::Ready(Some(Ok(entry)));
            }
            if self.fetching.is_none() {
                let cursor = match &self.cursor {
                    Cursor::End => return Poll::Ready(None),
                    Cursor::First => None,
                    Cursor::At(cursor) => Some(cursor.clone()),
                };
                let (core, method) = (Arc::clone(&self.core), self.method);
                self.fetching = Some(Box::pin(async move { fetch(&core, method, cursor).await }));
            }
            let Some(fetching) = &mut self.fetching else { continue };
            let fetched = ready!(fetching.as_mut().poll(cx));
            self.fetching = None;
            match fetched.and_then(|page| self.take(page)) {
                Ok(()) => {}
                Err(error) => {
                    self.cursor = Cursor::End;
                    return Poll::Ready(Some(Err(error)));
                }
            }
        }
    }

    fn take(&mut self, page: Page<T>) -> Result<()> {
        let limits = self.core.limits();
        self.pages += 1;
        self.entries += page.entries.len();
        if self.entries > limits.max_entries {
            return Err(ClientError::TooManyPages(limits.max_entries).into());
        }
        let is_http = self
            .core
            .current()
            .is_some_and(|now| matches!(now.link, Link::Http { .. }) && !now.rules.sessions);
        let core = &self.core;
        self.read.extend(page.entries.into_iter().filter(|entry| is_usable(core, entry, is_http)));
        self.cursor = match page.next {
            None => {
                if self.method == Method::ToolsList {
                    self.core.dispatch.book().is_whole_now();
                }
                Cursor::End
            }
            Some(_) if self.pages >= limits.max_pages => {
                return Err(ClientError::TooManyPages(limits.max_pages).into());
            }
            // An empty cursor is valid.
            Some(next) => match self.seen.insert(next.clone()) {
                true => Cursor::At(next),
                false => return Err(ClientError::CursorLoop.into()),
            },
        };
        Ok(())
    }
}

impl<T: ListItem> Stream for Paginated<T> {
    type Item = Result<T>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<T>>> {
        self.poll_entry(cx)
    }
}

/// Entry of a list: a tool, a prompt, a resource or a resource template.
pub trait ListItem: sealed::Member + DeserializeOwned + Send + Unpin + 'static {}

impl<T: sealed::Member + DeserializeOwned + Send + Unpin + 'static> ListItem for T {}

mod sealed {
    use super::{Prompt, Resource, ResourceTemplate, Tool};

    /// Location of the entries in a list result.
    pub trait Member {
        /// Member of the result that contains the entries.
        const MEMBER: &'static str;

        fn as_tool(&self) -> Option<&Tool> {
            None
        }
    }

    impl Member for Tool {
        const MEMBER: &'static str = "tools";

        fn as_tool(&self) -> Option<&Tool> {
            Some(self)
        }
    }

    impl Member for Prompt {
        const MEMBER: &'static str = "prompts";
    }

    impl Member for Resource {
        const MEMBER: &'static str = "resources";
    }

    impl Member for ResourceTemplate {
        const MEMBER: &'static str = "resourceTemplates";
    }
}

/// Caches a tool for calls. Returns `false` for a tool that cannot be called over HTTP.
fn is_usable(core: &Core, entry: &impl ListItem, is_http: bool) -> bool {
    let Some(tool) = entry.as_tool() else { return true };
    match core.dispatch.book().learn(tool) {
        Err(why) if is_http => {
            tracing::warn!(
                tool = tool.name,
                error = why,
                "omitted a tool with an invalid `x-mcp-header`"
            );
            false
        }
        _ => true,
    }
}

async fn fetch<T: ListItem>(
    core: &Arc<Core>,
    method: Method,
    cursor: Option<String>,
) -> Result<Page<T>> {
    let params = match cursor {
        Some(cursor) => format!(r#"{{"cursor":{}}}"#, Value::from(cursor)),
        None => "{}".to_owned(),
    };
    let found = Cached::fetch(core, Wanted::new(core, method, params)).await?;
    page(found.text())
}

/// Parses a page. Omits invalid entries, because one invalid tool must not hide the others.
fn page<T: ListItem>(text: &str) -> Result<Page<T>> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Next {
        next_cursor: Option<String>,
    }
    let Next { next_cursor } = read(text)?;
    let members: std::collections::HashMap<String, RawJson> = read(text)?;
    let entries = members
        .get(T::MEMBER)
        .ok_or_else(|| Error::broke(format!("the list has no member `{}`", T::MEMBER)))?;
    let entries: Vec<RawJson> = read(entries.get())?;
    let entries = entries.iter().filter_map(|entry| match serde_json::from_str(entry.get()) {
        Ok(entry) => Some(entry),
        Err(error) => {
            tracing::warn!(%error, "omitted an invalid list entry");
            None
        }
    });
    Ok(Page { entries: entries.collect(), next: next_cursor })
}
