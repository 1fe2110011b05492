//! Cuts a result to the limit of its host.
//!
//! The client gets the start, a line that states what is missing, the end, and a link per cut block.
//! The codecs write links as text for protocol versions without `resource_link`.

use outlive_tasks::store::{BlockKind, StoredBlock, TaskId, split_texts};
use outlive_wire::{CallToolResult, ContentBlock, Resource, ResourceContents};
use serde_json::{json, value::to_raw_value};

use crate::server::results::{
    body::ResultReader,
    error::ReadError,
    notice::{Rest, left_out},
    plan::{CutPlan, Fate},
    range::uri,
    read::{head_text, tail_text, text_start},
};

/// Maximum number of links in a cut result. A link costs about a hundred tokens.
const MAX_LINKS: usize = 16;

/// Options of a cut.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CutOptions<'a> {
    /// Maximum bytes of the text.
    pub(crate) limit: usize,
    /// Name of the tool.
    pub(crate) tool: &'a str,
    /// Where the client reads the rest.
    pub(crate) rest: Rest<'a>,
}

/// Cuts a result. Returns `None` if it fits whole.
pub(crate) async fn cut(
    reader: &ResultReader<'_>,
    options: CutOptions<'_>,
) -> Result<Option<CallToolResult>, ReadError> {
    let head = read_head(reader)?;
    match CutPlan::new(reader.result(), &head, options.limit) {
        Some(plan) => apply(reader, options, head, &plan).await.map(Some),
        None => Ok(None),
    }
}

/// Returns a result with its bodies, cut if it does not fit.
pub(crate) async fn cut_or_whole(
    reader: &ResultReader<'_>,
    options: CutOptions<'_>,
) -> Result<CallToolResult, ReadError> {
    let head = read_head(reader)?;
    let plan = CutPlan::new(reader.result(), &head, options.limit);
    let plan = plan.unwrap_or_else(|| CutPlan::whole(head.content.len()));
    apply(reader, options, head, &plan).await
}

fn read_head(reader: &ResultReader<'_>) -> Result<CallToolResult, ReadError> {
    serde_json::from_str(reader.result().head.get()).map_err(|_| ReadError::Unknown)
}

/// Builds the result of a plan.
async fn apply(
    reader: &ResultReader<'_>,
    options: CutOptions<'_>,
    head: CallToolResult,
    plan: &CutPlan,
) -> Result<CallToolResult, ReadError> {
    let mut cutter = Cutter {
        reader,
        options,
        content: Vec::new(),
        links: 0,
        omitted_links: 0,
        has_notice: false,
        missing: 0,
    };
    cutter.missing = cutter.missing(plan, &head).await?;
    let CallToolResult { content, structured_content, is_error, meta } = head;
    for (index, (block, fate)) in content.into_iter().zip(&plan.content).enumerate() {
        cutter.add(index, block, *fate).await?;
    }
    cutter.end();
    let structured = reader.result().blocks.iter().position(|block| block.content.is_none());
    let structured_content = match structured {
        Some(number) if plan.cuts_structured => cutter.structured(number, is_error == Some(true)),
        Some(number) => {
            let block = reader.block(number)?;
            let json = reader.text(block.body, block.bytes).await?;
            serde_json::value::RawValue::from_string(json).ok()
        }
        None => structured_content,
    };
    Ok(CallToolResult { content: cutter.content, structured_content, is_error, meta })
}

/// The cut result so far.
struct Cutter<'r, 'a> {
    reader: &'r ResultReader<'a>,
    options: CutOptions<'r>,
    content: Vec<ContentBlock>,
    links: usize,
    omitted_links: usize,
    /// Whether the content states what is missing.
    has_notice: bool,
    /// Bytes that are left out.
    missing: u64,
}

impl Cutter<'_, '_> {
    /// Adds a content block of the head.
    async fn add(
        &mut self,
        index: usize,
        content: ContentBlock,
        fate: Fate,
    ) -> Result<(), ReadError> {
        let blocks = &self.reader.result().blocks;
        let number = blocks.iter().position(|block| block.content == Some(index));
        match (fate, number) {
            (Fate::Whole, None) => self.content.push(content),
            (Fate::Whole, Some(number)) => {
                let whole = restore(self.reader, content, self.reader.block(number)?).await?;
                self.content.extend(whole);
            }
            (Fate::Ends { head, tail }, Some(number)) => {
                self.add_ends(content, number, (head, tail)).await?;
                self.link(number);
            }
            (Fate::Link, Some(number)) => {
                if !self.reader.block(number).is_ok_and(is_media) {
                    self.notice(self.text_start(number));
                }
                self.link(number);
            }
            (Fate::Drop | Fate::Ends { .. } | Fate::Link, _) => self.notice(None),
        }
        Ok(())
    }

    /// Adds the start and the end of a text, with the notice between them.
    async fn add_ends(
        &mut self,
        content: ContentBlock,
        number: usize,
        (head, tail): (u64, u64),
    ) -> Result<(), ReadError> {
        let block = self.reader.block(number)?;
        let mut text = head_text(self.reader, block, head).await?;
        if !self.has_notice {
            self.has_notice = true;
            let from = text_start(self.reader.result(), number) + text.len() as u64;
            let notice = left_out(self.options.rest, self.missing, Some(from));
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            text.push_str(&notice);
        }
        let end = tail_text(self.reader, block, tail).await?;
        if !end.is_empty() {
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(&end);
        }
        self.content.push(with_text(content, text));
        Ok(())
    }

    /// Adds the notice as a block, unless the content has it.
    fn notice(&mut self, from: Option<u64>) {
        if !std::mem::replace(&mut self.has_notice, true) {
            let notice = left_out(self.options.rest, self.missing, from);
            self.content.push(ContentBlock::text(notice));
        }
    }

    fn text_start(&self, number: usize) -> Option<u64> {
        let block = self.reader.block(number).ok()?;
        let is_text = matches!(block.kind, BlockKind::Text | BlockKind::Texts);
        is_text.then(|| text_start(self.reader.result(), number))
    }

    /// Adds a link to a block.
    fn link(&mut self, number: usize) {
        let Rest::Stored(task) = self.options.rest else { return self.notice(None) };
        if self.links == MAX_LINKS {
            self.omitted_links += 1;
            return;
        }
        self.links += 1;
        if let Ok(block) = self.reader.block(number) {
            let link = link(task, number, block, self.options.tool);
            self.content.push(ContentBlock::resource_link(link));
        }
    }

    /// Names the blocks that got no link.
    fn end(&mut self) {
        if let (Rest::Stored(task), 1..) = (self.options.rest, self.omitted_links) {
            let (more, last) = (self.omitted_links, self.reader.result().blocks.len() - 1);
            let text = format!(
                "[{more} more blocks have no link here; the last one is {}]",
                uri(task, last)
            );
            self.content.push(ContentBlock::text(text));
        }
    }

    /// Returns the object that replaces the structured content.
    fn structured(&self, number: usize, is_error: bool) -> Option<outlive_wire::RawJson> {
        let block = self.reader.block(number).ok()?;
        let status = if is_error { "failed" } else { "completed" };
        let mut task = json!({"tool": self.options.tool, "status": status});
        let mut cut = json!({"bytes": block.bytes});
        if let Rest::Stored(id) = self.options.rest {
            task["id"] = id.as_str().into();
            cut["uri"] = uri(id, number).into();
        }
        to_raw_value(&json!({"task": task, "cut": cut})).ok()
    }

    /// Returns the bytes that the content leaves out, with the ends at their exact lengths.
    async fn missing(&self, plan: &CutPlan, head: &CallToolResult) -> Result<u64, ReadError> {
        let mut missing = 0;
        for (index, fate) in plan.content.iter().enumerate() {
            let blocks = &self.reader.result().blocks;
            let block = blocks.iter().find(|block| block.content == Some(index));
            missing += match (fate, block) {
                (Fate::Whole, _) => 0,
                (Fate::Ends { head, tail }, Some(block)) => {
                    let start = head_text(self.reader, block, *head).await?;
                    let end = tail_text(self.reader, block, *tail).await?;
                    block.bytes.saturating_sub((start.len() + end.len()) as u64)
                }
                (_, Some(block)) if is_media(block) => block.size(),
                (_, Some(block)) => block.bytes,
                (_, None) => head.content.get(index).map_or(0, inline_bytes),
            };
        }
        Ok(missing)
    }
}

fn inline_bytes(content: &ContentBlock) -> u64 {
    serde_json::to_string(content).map_or(0, |json| json.len() as u64)
}

fn is_media(block: &StoredBlock) -> bool {
    matches!(block.kind, BlockKind::Base64 { .. })
}

/// Returns the link to a block.
fn link(task: &TaskId, number: usize, block: &StoredBlock, tool: &str) -> Resource {
    let mime_type = block.mime_type.as_deref().unwrap_or("text/plain");
    Resource::new(uri(task, number), format!("result of {tool}"))
        .with_mime_type(mime_type)
        .with_size(block.size())
}

/// Returns the original blocks of a block of the head.
pub(crate) async fn restore(
    reader: &ResultReader<'_>,
    content: ContentBlock,
    block: &StoredBlock,
) -> Result<Vec<ContentBlock>, ReadError> {
    let body = reader.text(block.body, block.bytes).await?;
    Ok(match block.kind {
        BlockKind::Text | BlockKind::Base64 { .. } | BlockKind::Json => {
            vec![with_text(content, body)]
        }
        BlockKind::Items => serde_json::from_str(&body).map_err(|_| ReadError::Unknown)?,
        BlockKind::Texts => {
            let (number, bytes) = block.lengths.ok_or(ReadError::Unknown)?;
            let lengths = reader.text(number, bytes).await?;
            let texts = split_texts(&body, &lengths).ok_or(ReadError::Unknown)?;
            texts.into_iter().map(ContentBlock::text).collect()
        }
    })
}

/// Sets the body of a block.
fn with_text(mut content: ContentBlock, body: String) -> ContentBlock {
    match &mut content {
        ContentBlock::Text(text) => text.text = body,
        ContentBlock::Image(image) => image.data = body,
        ContentBlock::Audio(audio) => audio.data = body,
        ContentBlock::Resource(embedded) => match &mut embedded.resource {
            ResourceContents::Text(contents) => contents.text = body,
            ResourceContents::Blob(contents) => contents.blob = body,
            _ => {}
        },
        _ => {}
    }
    content
}
