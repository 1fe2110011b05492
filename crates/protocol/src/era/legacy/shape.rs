//! Removes or converts the parts of a result that a version does not have.

use memchr::memmem;
use outlive_wire::{
    Annotations, CallToolResult, ContentBlock, GetPromptResult, Implementation, Meta, Prompt,
    RawJson, Resource, ResourceContents, ResourceTemplate, SamplingMessageContentBlock,
    ServerCapabilities, Tool, Version,
};
use serde_json::value::RawValue;

use crate::{Progress, RelayedResult, VersionRules, relayed::Structured};

pub(super) fn capabilities(
    rules: &VersionRules,
    mut capabilities: ServerCapabilities,
) -> ServerCapabilities {
    if !rules.since(Version::V2025_03_26) {
        capabilities.completions = None;
    }
    capabilities
}

pub(super) fn info(rules: &VersionRules, mut info: Implementation) -> Implementation {
    if !rules.since(Version::V2025_11_25) {
        info.description = None;
        info.website_url = None;
        info.icons = None;
    }
    if !rules.since(Version::V2025_06_18) {
        info.title = None;
    }
    info
}

pub(super) fn tool(rules: &VersionRules, tool: &mut Tool) {
    if tool.output_schema.as_ref().is_some_and(|schema| !is_object_schema(schema)) {
        tool.output_schema = None;
    }
    if !rules.since(Version::V2025_11_25) {
        tool.icons = None;
        tool.execution = None;
    }
    if !rules.since(Version::V2025_06_18) {
        tool.title = None;
        tool.output_schema = None;
        tool.meta = None;
    }
    if !rules.since(Version::V2025_03_26) {
        tool.annotations = None;
    }
}

pub(super) fn resource(rules: &VersionRules, resource: &mut Resource) {
    if !rules.since(Version::V2025_11_25) {
        resource.icons = None;
    }
    if !rules.since(Version::V2025_06_18) {
        resource.title = None;
        resource.meta = None;
        undated(&mut resource.annotations);
    }
}

pub(super) fn template(rules: &VersionRules, template: &mut ResourceTemplate) {
    if !rules.since(Version::V2025_11_25) {
        template.icons = None;
    }
    if !rules.since(Version::V2025_06_18) {
        template.title = None;
        template.meta = None;
        undated(&mut template.annotations);
    }
}

pub(super) fn prompt(rules: &VersionRules, prompt: &mut Prompt) {
    if !rules.since(Version::V2025_11_25) {
        prompt.icons = None;
    }
    if !rules.since(Version::V2025_06_18) {
        prompt.title = None;
        prompt.meta = None;
        prompt.arguments.iter_mut().flatten().for_each(|argument| argument.title = None);
    }
}

pub(super) fn tool_result(rules: &VersionRules, mut result: CallToolResult) -> CallToolResult {
    let structured = rules.since(Version::V2025_06_18);
    // Legacy clients accept objects only. The text content has the same data.
    result.structured_content =
        result.structured_content.filter(|json| structured && is_object(json));
    result.content.iter_mut().for_each(|block| content(rules, block));
    result
}

pub(super) fn prompt_result(rules: &VersionRules, mut result: GetPromptResult) -> GetPromptResult {
    result.messages.iter_mut().for_each(|message| content(rules, &mut message.content));
    result
}

pub(super) fn contents(rules: &VersionRules, contents: &mut ResourceContents) {
    if rules.since(Version::V2025_06_18) {
        return;
    }
    match contents {
        ResourceContents::Text(contents) => contents.meta = None,
        ResourceContents::Blob(contents) => contents.meta = None,
        _ => {}
    }
}

/// Returns whether [`tool_result`] may change a result.
pub(super) fn changes_tool_result(rules: &VersionRules, result: &RelayedResult) -> bool {
    let lacks_structured = match result.structured() {
        Structured::Absent => false,
        Structured::Object => !rules.since(Version::V2025_06_18),
        Structured::Other => true,
    };
    lacks_structured || changes_content(rules, result.get())
}

/// Returns whether [`content`] may change a block in a text: whether the text names a member or a
/// block that the version lacks.
pub(super) fn changes_content(rules: &VersionRules, text: &str) -> bool {
    let has = |part: &str| memmem::find(text.as_bytes(), part.as_bytes()).is_some();
    !rules.since(Version::V2025_11_25) && has("resource_link")
        || !rules.since(Version::V2025_06_18) && (has("lastModified") || has("_meta"))
        || !rules.since(Version::V2025_03_26) && has("audio")
}

/// Returns whether [`contents`] may change contents in a text.
pub(super) fn changes_contents(rules: &VersionRules, text: &str) -> bool {
    !rules.since(Version::V2025_06_18) && memmem::find(text.as_bytes(), b"_meta").is_some()
}

pub(super) fn progress(rules: &VersionRules, mut progress: Progress) -> Progress {
    if !rules.since(Version::V2025_03_26) {
        progress.message = None;
    }
    progress
}

/// Adapts a content block of a sampling message. The caller has checked that the version has its
/// type.
pub(super) fn model_block(rules: &VersionRules, block: &mut SamplingMessageContentBlock) {
    use SamplingMessageContentBlock as Block;
    match block {
        Block::Text(block) => beside(rules, &mut block.annotations, &mut block.meta),
        Block::Image(block) => beside(rules, &mut block.annotations, &mut block.meta),
        Block::Audio(block) => beside(rules, &mut block.annotations, &mut block.meta),
        Block::ToolResult(result) => {
            result.structured_content = result.structured_content.take().filter(is_object);
            result.content.iter_mut().for_each(|block| content(rules, block));
        }
        _ => {}
    }
}

/// Converts links and audio to text for clients that would reject the whole result.
fn content(rules: &VersionRules, block: &mut ContentBlock) {
    match block {
        ContentBlock::Text(block) => beside(rules, &mut block.annotations, &mut block.meta),
        ContentBlock::Image(block) => beside(rules, &mut block.annotations, &mut block.meta),
        ContentBlock::Audio(block) => beside(rules, &mut block.annotations, &mut block.meta),
        ContentBlock::Resource(block) => {
            contents(rules, &mut block.resource);
            beside(rules, &mut block.annotations, &mut block.meta);
        }
        ContentBlock::ResourceLink(link) => resource(rules, link),
        _ => {}
    }
    let text = match block {
        ContentBlock::ResourceLink(link) if !rules.since(Version::V2025_06_18) => {
            format!("{}: {}", link.name, link.uri)
        }
        ContentBlock::Audio(audio) if !rules.since(Version::V2025_03_26) => {
            format!("[audio, {}: not supported by this protocol version]", audio.mime_type)
        }
        _ => return,
    };
    *block = ContentBlock::text(text);
}

/// Removes annotations and `_meta` that the version does not have.
fn beside(rules: &VersionRules, annotations: &mut Option<Annotations>, meta: &mut Option<Meta>) {
    if !rules.since(Version::V2025_06_18) {
        undated(annotations);
        *meta = None;
    }
}

/// Removes `lastModified`, which exists since 2025-06-18.
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
