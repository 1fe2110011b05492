//! The Model Context Protocol as serde types: every version, no behavior, no async.
//!
//! One file per noun of the specification. A type has the members of all versions; the codecs in
//! `outlive-protocol` select those of one version. Members that the modern era adds to every result
//! (`resultType`, `ttlMs`, `cacheScope`) are in [`WithResultType`].

mod annotations;
mod cache;
mod capabilities;
mod completion;
mod content;
mod elicitation;
mod elicitation_schema;
mod envelope;
mod error;
mod field;
mod identity;
mod input;
mod input_responses;
mod lifecycle;
mod logging;
mod logging_level;
mod meta;
mod method;
mod ordered_map;
mod params;
mod progress;
mod prompt;
mod resource;
mod roots;
mod sampling;
mod subscription;
mod tool;
mod version;
mod with_result_type;

pub use annotations::{Annotations, Role};
pub use cache::{CacheHints, CacheScope};
pub use capabilities::{
    ClientCapabilities, ElicitationCapability, JsonObject, PromptsCapability, ResourcesCapability,
    RootsCapability, SamplingCapability, ServerCapabilities, ToolsCapability,
};
pub use completion::{
    CompleteRequestParams, CompleteResult, Completion, CompletionArgument, CompletionContext,
    CompletionReference, PromptReference, ResourceTemplateReference,
};
pub use content::{AudioContent, ContentBlock, EmbeddedResource, ImageContent, TextContent};
pub use elicitation::{
    ElicitAction, ElicitRequestFormParams, ElicitRequestParams, ElicitRequestURLParams,
    ElicitResult, ElicitationCompleteNotificationParams, FormMode,
};
pub use elicitation_schema::{
    BooleanSchema, EnumOption, LegacyTitledEnumSchema, NumberKind, NumberSchema,
    PrimitiveSchemaDefinition, RequestedSchema, StringFormat, StringSchema, TitledItems,
    TitledMultiSelectEnumSchema, TitledSingleSelectEnumSchema, UntitledItems,
    UntitledMultiSelectEnumSchema, UntitledSingleSelectEnumSchema,
};
pub use envelope::{Envelope, Message, RawJson, Str};
pub use error::{ErrorObject, code};
pub use identity::{Icon, IconTheme, Implementation};
pub use input::{InputRequest, InputRequests, InputRequiredResult};
pub use input_responses::InputResponses;
pub use lifecycle::{DiscoverResult, InitializeRequestParams, InitializeResult};
pub use logging::{LoggingMessageNotificationParams, SetLevelRequestParams};
pub use logging_level::LoggingLevel;
pub use meta::{Meta, MetaKeyError, RequestMetaObject};
pub use method::Method;
pub use ordered_map::OrderedMap;
pub use params::{EmptyResult, NotificationParams, PaginatedRequestParams, RequestParams};
pub use progress::{
    CancelledNotificationParams, ProgressNotificationParams, ProgressToken, RequestId,
};
pub use prompt::{
    GetPromptRequestParams, GetPromptResult, ListPromptsResult, Prompt, PromptArgument,
    PromptMessage,
};
pub use resource::{
    BlobResourceContents, ListResourceTemplatesResult, ListResourcesResult,
    ReadResourceRequestParams, ReadResourceResult, Resource, ResourceContents, ResourceTemplate,
    ResourceUpdatedNotificationParams, SubscribeRequestParams, TextResourceContents,
    UnsubscribeRequestParams,
};
pub use roots::{ListRootsResult, Root};
pub use sampling::{
    CreateMessageRequestParams, CreateMessageResult, IncludeContext, ModelHint, ModelPreferences,
    SamplingContent, SamplingMessage, SamplingMessageContentBlock, ToolChoice, ToolChoiceMode,
    ToolResultContent, ToolUseContent,
};
pub use subscription::{
    SubscriptionFilter, SubscriptionsAcknowledgedNotificationParams,
    SubscriptionsListenRequestParams, SubscriptionsListenResult,
};
pub use tool::{
    CallToolRequestParams, CallToolResult, ListToolsResult, Schema, TaskSupport, Tool,
    ToolAnnotations, ToolExecution,
};
pub use version::{UnknownVersion, Version};
pub use with_result_type::WithResultType;
