//! Takes out of an answer what a revision did not know yet, and says it in its words where it can.

use outlive_wire::{
    Annotations, CallToolResult, ContentBlock, GetPromptResult, Implementation, Meta, Prompt,
    RawJson, Resource, ResourceContents, ResourceTemplate, SamplingMessageContentBlock,
    ServerCapabilities, Tool, Version,
};
use serde_json::value::RawValue;

use super::Legacy;
use crate::Progress;

pub(super) fn capabilities(
    era: &Legacy,
    mut capabilities: ServerCapabilities,
) -> ServerCapabilities {
    if !era.since(Version::V2025_03_26) {
        capabilities.completions = None;
    }
    capabilities
}

pub(super) fn info(era: &Legacy, mut info: Implementation) -> Implementation {
    if !era.since(Version::V2025_11_25) {
        info.description = None;
        info.website_url = None;
        info.icons = None;
    }
    if !era.since(Version::V2025_06_18) {
        info.title = None;
    }
    info
}

pub(super) fn tool(era: &Legacy, tool: &mut Tool) {
    if tool.output_schema.as_ref().is_some_and(|schema| !is_object_schema(schema)) {
        tool.output_schema = None;
    }
    if !era.since(Version::V2025_11_25) {
        tool.icons = None;
        tool.execution = None;
    }
    if !era.since(Version::V2025_06_18) {
        tool.title = None;
        tool.output_schema = None;
        tool.meta = None;
    }
    if !era.since(Version::V2025_03_26) {
        tool.annotations = None;
    }
}

pub(super) fn resource(era: &Legacy, resource: &mut Resource) {
    if !era.since(Version::V2025_11_25) {
        resource.icons = None;
    }
    if !era.since(Version::V2025_06_18) {
        resource.title = None;
        resource.meta = None;
        undated(&mut resource.annotations);
    }
}

pub(super) fn template(era: &Legacy, template: &mut ResourceTemplate) {
    if !era.since(Version::V2025_11_25) {
        template.icons = None;
    }
    if !era.since(Version::V2025_06_18) {
        template.title = None;
        template.meta = None;
        undated(&mut template.annotations);
    }
}

pub(super) fn prompt(era: &Legacy, prompt: &mut Prompt) {
    if !era.since(Version::V2025_11_25) {
        prompt.icons = None;
    }
    if !era.since(Version::V2025_06_18) {
        prompt.title = None;
        prompt.meta = None;
        prompt.arguments.iter_mut().flatten().for_each(|argument| argument.title = None);
    }
}

pub(super) fn tool_result(era: &Legacy, mut result: CallToolResult) -> CallToolResult {
    let structured = era.since(Version::V2025_06_18);
    // Legacy peers take objects only; what else there is stands in the text twin.
    result.structured_content =
        result.structured_content.filter(|json| structured && is_object(json));
    result.content.iter_mut().for_each(|block| content(era, block));
    result
}

pub(super) fn prompt_result(era: &Legacy, mut result: GetPromptResult) -> GetPromptResult {
    result.messages.iter_mut().for_each(|message| content(era, &mut message.content));
    result
}

pub(super) fn contents(era: &Legacy, contents: &mut ResourceContents) {
    if era.since(Version::V2025_06_18) {
        return;
    }
    match contents {
        ResourceContents::Text(contents) => contents.meta = None,
        ResourceContents::Blob(contents) => contents.meta = None,
        _ => {}
    }
}

pub(super) fn progress(era: &Legacy, mut progress: Progress) -> Progress {
    if !era.since(Version::V2025_03_26) {
        progress.message = None;
    }
    progress
}

/// A block of a conversation with the client's model. What it is, its revision has been asked before.
pub(super) fn model_block(era: &Legacy, block: &mut SamplingMessageContentBlock) {
    use SamplingMessageContentBlock as Block;
    match block {
        Block::Text(block) => beside(era, &mut block.annotations, &mut block.meta),
        Block::Image(block) => beside(era, &mut block.annotations, &mut block.meta),
        Block::Audio(block) => beside(era, &mut block.annotations, &mut block.meta),
        Block::ToolResult(result) => {
            result.structured_content = result.structured_content.take().filter(is_object);
            result.content.iter_mut().for_each(|block| content(era, block));
        }
        _ => {}
    }
}

/// Links and audio become text for clients that would refuse the whole result over them.
fn content(era: &Legacy, block: &mut ContentBlock) {
    match block {
        ContentBlock::Text(block) => beside(era, &mut block.annotations, &mut block.meta),
        ContentBlock::Image(block) => beside(era, &mut block.annotations, &mut block.meta),
        ContentBlock::Audio(block) => beside(era, &mut block.annotations, &mut block.meta),
        ContentBlock::Resource(block) => {
            contents(era, &mut block.resource);
            beside(era, &mut block.annotations, &mut block.meta);
        }
        ContentBlock::ResourceLink(link) => resource(era, link),
        _ => {}
    }
    let text = match block {
        ContentBlock::ResourceLink(link) if !era.since(Version::V2025_06_18) => {
            format!("{}: {}", link.name, link.uri)
        }
        ContentBlock::Audio(audio) if !era.since(Version::V2025_03_26) => {
            format!("[audio, {}, which this protocol version cannot carry]", audio.mime_type)
        }
        _ => return,
    };
    *block = ContentBlock::text(text);
}

/// What stands beside a block's subject.
fn beside(era: &Legacy, annotations: &mut Option<Annotations>, meta: &mut Option<Meta>) {
    if !era.since(Version::V2025_06_18) {
        undated(annotations);
        *meta = None;
    }
}

/// When something changed is known from 2025-06-18 on.
fn undated(annotations: &mut Option<Annotations>) {
    if let Some(annotations) = annotations {
        annotations.last_modified = None;
    }
}

fn is_object(json: &RawJson) -> bool {
    json.get().starts_with('{')
}

fn is_object_schema(schema: &RawValue) -> bool {
    #[derive(serde::Deserialize)]
    struct Root<'a> {
        #[serde(borrow, default)]
        r#type: Option<&'a RawValue>,
    }
    serde_json::from_str::<Root<'_>>(schema.get())
        .is_ok_and(|root| root.r#type.is_some_and(|kind| kind.get() == "\"object\""))
}
