//! Reads the lists of an upstream, within limits.

use std::{collections::HashSet, time::Duration};

use outlive::client::{Error, relay::ListKind};
use serde::de::DeserializeOwned;

use super::definitions::Definitions;
use crate::{excerpt::excerpt, settings::Upstream, upstream::Connection};

/// Bytes of all lists of one upstream.
const MAX_BYTES: usize = 32 << 20;

/// Prompts, resources or templates of one upstream.
const MAX_ENTRIES: usize = 10_000;

/// Bytes of the instructions of one upstream.
const MAX_INSTRUCTIONS: usize = 4 << 10;

/// Reasons for left-out entries that are reported.
const MAX_REASONS: usize = 8;

/// An entry of a list with its identity.
trait Entry: DeserializeOwned {
    fn key(&self) -> &str;
}

impl Entry for outlive::wire::Tool {
    fn key(&self) -> &str {
        &self.name
    }
}

impl Entry for outlive::wire::Prompt {
    fn key(&self) -> &str {
        &self.name
    }
}

impl Entry for outlive::wire::Resource {
    fn key(&self) -> &str {
        &self.uri
    }
}

impl Entry for outlive::wire::ResourceTemplate {
    fn key(&self) -> &str {
        &self.uri_template
    }
}

/// Reads all lists of an upstream. `meta` has the members of `_meta`, without braces.
///
/// # Errors
///
/// Returns the error of the first list that cannot be read.
pub(crate) async fn read(
    connection: &Connection,
    settings: &Upstream,
    meta: &str,
) -> Result<Definitions, Error> {
    let mut reader = Reader { connection, meta, bytes: 0, ttl: None, left_out: Vec::new() };
    let tools = reader.list(ListKind::Tools, "tools", settings.max_tools).await?;
    let prompts = reader.list(ListKind::Prompts, "prompts", MAX_ENTRIES).await?;
    let resources = reader.list(ListKind::Resources, "resources", MAX_ENTRIES).await?;
    let templates =
        reader.list(ListKind::ResourceTemplates, "resource templates", MAX_ENTRIES).await?;
    Ok(Definitions {
        tools,
        prompts,
        resources,
        templates,
        instructions: connection.instructions().map(|text| cut(text, MAX_INSTRUCTIONS).to_owned()),
        left_out: reader.left_out,
        ttl: reader.ttl,
        ..Definitions::default()
    })
}

/// Returns the start of a text.
fn cut(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    &text[..end.unwrap_or(0)]
}

struct Reader<'a> {
    connection: &'a Connection,
    /// Members of `_meta` of each request.
    meta: &'a str,
    bytes: usize,
    ttl: Option<Duration>,
    left_out: Vec<String>,
}

impl Reader<'_> {
    async fn list<T: Entry>(
        &mut self,
        kind: ListKind,
        what: &str,
        max: usize,
    ) -> Result<Vec<T>, Error> {
        let client = &self.connection.client;
        let mut pages = client.relay_list(kind, self.connection.class()).meta(self.meta);
        let mut entries: Vec<T> = Vec::new();
        let mut known = HashSet::new();
        while let Some(page) = pages.next().await {
            let page = page?;
            if let Some(ttl) = page.ttl_ms.map(Duration::from_millis) {
                self.ttl = Some(self.ttl.map_or(ttl, |known| known.min(ttl)));
            }
            self.bytes = self.bytes.saturating_add(page.result.len());
            for item in &page.items {
                match serde_json::from_str::<T>(item.get()) {
                    Ok(entry) if !known.insert(entry.key().to_owned()) => {
                        let name = excerpt(entry.key());
                        self.leave_out(format!("`{name}` is in the list of {what} twice"));
                    }
                    Ok(_) if entries.len() >= max => {
                        self.leave_out(format!("only the first {max} {what} are used"));
                        return Ok(entries);
                    }
                    Ok(entry) => entries.push(entry),
                    Err(error) => {
                        let reason = excerpt(&error.to_string());
                        self.leave_out(format!("an entry of the {what} is invalid: {reason}"));
                    }
                }
            }
            if self.bytes > MAX_BYTES {
                let most = MAX_BYTES >> 20;
                self.leave_out(format!("the lists are longer than {most} MiB; the rest is unused"));
                return Ok(entries);
            }
        }
        Ok(entries)
    }

    fn leave_out(&mut self, reason: String) {
        if self.left_out.len() < MAX_REASONS && !self.left_out.contains(&reason) {
            self.left_out.push(reason);
        }
    }
}
