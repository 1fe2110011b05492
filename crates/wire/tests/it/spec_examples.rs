//! Deserializes and serializes every example of the specification with the type of its name. The
//! JSON must not change.
//!
//! The examples are not in this repository. `OUTLIVE_SPEC_DIR` is a folder with
//! `2026-07-28/examples/<type>/<case>.json`.

use std::{env, fs, path::Path};

use outlive_wire::{
    BooleanSchema, CallToolRequestParams, CallToolResult, CancelledNotificationParams,
    ClientCapabilities, CompleteRequestParams, CompleteResult, ContentBlock,
    CreateMessageRequestParams, CreateMessageResult, DiscoverResult, ElicitRequestFormParams,
    ElicitRequestParams, ElicitRequestURLParams, ElicitResult, Envelope, ErrorObject,
    GetPromptRequestParams, GetPromptResult, InputRequest, InputRequests, InputRequiredResult,
    InputResponses, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListRootsResult, ListToolsResult, LoggingMessageNotificationParams, Message, Method,
    ModelPreferences, NotificationParams, NumberSchema, PaginatedRequestParams,
    PrimitiveSchemaDefinition, ProgressNotificationParams, ReadResourceRequestParams,
    ReadResourceResult, RequestParams, Resource, ResourceContents,
    ResourceUpdatedNotificationParams, Root, SamplingMessage, SamplingMessageContentBlock,
    ServerCapabilities, StringSchema, SubscriptionsAcknowledgedNotificationParams,
    SubscriptionsListenRequestParams, SubscriptionsListenResult, TitledMultiSelectEnumSchema,
    TitledSingleSelectEnumSchema, Tool, UntitledMultiSelectEnumSchema,
    UntitledSingleSelectEnumSchema, WithResultType, code,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

const EXAMPLES: usize = 129;

#[test]
fn every_example_of_2026_07_28_round_trips() {
    let Some(dir) = env::var_os("OUTLIVE_SPEC_DIR") else {
        println!("OUTLIVE_SPEC_DIR not set: skipping the examples of the specification");
        return;
    };
    let examples = Path::new(&dir).join("2026-07-28/examples");
    let mut count = 0;
    let mut wrong = Vec::new();
    for folder in entries(&examples) {
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        for file in entries(&folder) {
            count += 1;
            let json = fs::read_to_string(&file).unwrap();
            if let Err(why) = round_trip(&name, &json) {
                wrong.push(format!("{}: {why}", file.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(count, EXAMPLES, "the number of examples changed");
}

fn entries(folder: &Path) -> Vec<std::path::PathBuf> {
    let read = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    read.map(|entry| entry.expect("the folder is readable").path()).collect()
}

/// The result of a check: `Ok`, or a description of the error.
type Verdict = Result<(), String>;

/// Maps the name of each type in the specification's schema to its check.
#[rustfmt::skip]
fn round_trip(name: &str, json: &str) -> Verdict {
    match name {
        // Content.
        "TextContent" => variant::<ContentBlock>(json, |b| matches!(b, ContentBlock::Text(_))),
        "ImageContent" => variant::<ContentBlock>(json, |b| matches!(b, ContentBlock::Image(_))),
        "AudioContent" => variant::<ContentBlock>(json, |b| matches!(b, ContentBlock::Audio(_))),
        "ResourceLink" => variant::<ContentBlock>(json, |b| matches!(b, ContentBlock::ResourceLink(_))),
        "EmbeddedResource" => variant::<ContentBlock>(json, |b| matches!(b, ContentBlock::Resource(_))),
        "TextResourceContents" => variant::<ResourceContents>(json, |c| matches!(c, ResourceContents::Text(_))),
        "BlobResourceContents" => variant::<ResourceContents>(json, |c| matches!(c, ResourceContents::Blob(_))),
        "ToolUseContent" => variant::<SamplingMessageContentBlock>(json, |b| matches!(b, SamplingMessageContentBlock::ToolUse(_))),
        "ToolResultContent" => variant::<SamplingMessageContentBlock>(json, |b| matches!(b, SamplingMessageContentBlock::ToolResult(_))),

        // Lifecycle.
        "ClientCapabilities" => plain::<ClientCapabilities>(json),
        "ServerCapabilities" => plain::<ServerCapabilities>(json),
        "DiscoverRequest" => request::<RequestParams>(json, Method::Discover),
        "DiscoverResult" => result::<DiscoverResult>(json),
        "DiscoverResultResponse" => response::<DiscoverResult>(json),

        // Tools.
        "Tool" => plain::<Tool>(json),
        "ListToolsRequest" => request::<PaginatedRequestParams>(json, Method::ToolsList),
        "ListToolsResult" => result::<ListToolsResult>(json),
        "ListToolsResultResponse" => response::<ListToolsResult>(json),
        "CallToolRequest" => request::<CallToolRequestParams>(json, Method::ToolsCall),
        "CallToolRequestParams" => plain::<CallToolRequestParams>(json),
        "CallToolResult" => result::<CallToolResult>(json),
        "CallToolResultResponse" => response::<CallToolResult>(json),
        "ToolListChangedNotification" => notification::<NotificationParams>(json, Method::ToolsListChanged),

        // Resources.
        "Resource" => plain::<Resource>(json),
        "ListResourcesRequest" => request::<PaginatedRequestParams>(json, Method::ResourcesList),
        "ListResourcesResult" => result::<ListResourcesResult>(json),
        "ListResourcesResultResponse" => response::<ListResourcesResult>(json),
        "ListResourceTemplatesRequest" => request::<PaginatedRequestParams>(json, Method::ResourceTemplatesList),
        "ListResourceTemplatesResult" => result::<ListResourceTemplatesResult>(json),
        "ListResourceTemplatesResultResponse" => response::<ListResourceTemplatesResult>(json),
        "ReadResourceRequest" => request::<ReadResourceRequestParams>(json, Method::ResourcesRead),
        "ReadResourceResult" => result::<ReadResourceResult>(json),
        "ReadResourceResultResponse" => response::<ReadResourceResult>(json),
        "ResourceListChangedNotification" => notification::<NotificationParams>(json, Method::ResourcesListChanged),
        "ResourceUpdatedNotification" => notification::<ResourceUpdatedNotificationParams>(json, Method::ResourceUpdated),
        "ResourceUpdatedNotificationParams" => plain::<ResourceUpdatedNotificationParams>(json),

        // Prompts and completion.
        "ListPromptsRequest" => request::<PaginatedRequestParams>(json, Method::PromptsList),
        "ListPromptsResult" => result::<ListPromptsResult>(json),
        "ListPromptsResultResponse" => response::<ListPromptsResult>(json),
        "GetPromptRequest" => request::<GetPromptRequestParams>(json, Method::PromptsGet),
        "GetPromptRequestParams" => plain::<GetPromptRequestParams>(json),
        "GetPromptResult" => result::<GetPromptResult>(json),
        "GetPromptResultResponse" => response::<GetPromptResult>(json),
        "PromptListChangedNotification" => notification::<NotificationParams>(json, Method::PromptsListChanged),
        "CompleteRequest" => request::<CompleteRequestParams>(json, Method::Complete),
        "CompleteRequestParams" => plain::<CompleteRequestParams>(json),
        "CompleteResult" => result::<CompleteResult>(json),
        "CompleteResultResponse" => response::<CompleteResult>(json),
        "PaginatedRequestParams" => plain::<PaginatedRequestParams>(json),

        // Input requests.
        "InputRequests" => plain::<InputRequests>(json),
        "InputResponses" => plain::<InputResponses>(json),
        "InputRequiredResult" => result::<InputRequiredResult>(json),
        "ElicitRequest" => variant::<InputRequest>(json, |q| matches!(q, InputRequest::Elicit(_))),
        "ElicitRequestFormParams" => plain::<ElicitRequestFormParams>(json)
            .and(variant::<ElicitRequestParams>(json, |p| matches!(p, ElicitRequestParams::Form(_)))),
        "ElicitRequestURLParams" => plain::<ElicitRequestURLParams>(json)
            .and(variant::<ElicitRequestParams>(json, |p| matches!(p, ElicitRequestParams::Url(_)))),
        "ElicitResult" => plain::<ElicitResult>(json),
        "StringSchema" => field::<StringSchema>(json, |f| matches!(f, PrimitiveSchemaDefinition::String(_))),
        "NumberSchema" => field::<NumberSchema>(json, |f| matches!(f, PrimitiveSchemaDefinition::Number(_))),
        "BooleanSchema" => field::<BooleanSchema>(json, |f| matches!(f, PrimitiveSchemaDefinition::Boolean(_))),
        "UntitledSingleSelectEnumSchema" => field::<UntitledSingleSelectEnumSchema>(json, |f| matches!(f, PrimitiveSchemaDefinition::UntitledSingleSelect(_))),
        "TitledSingleSelectEnumSchema" => field::<TitledSingleSelectEnumSchema>(json, |f| matches!(f, PrimitiveSchemaDefinition::TitledSingleSelect(_))),
        "UntitledMultiSelectEnumSchema" => field::<UntitledMultiSelectEnumSchema>(json, |f| matches!(f, PrimitiveSchemaDefinition::UntitledMultiSelect(_))),
        "TitledMultiSelectEnumSchema" => field::<TitledMultiSelectEnumSchema>(json, |f| matches!(f, PrimitiveSchemaDefinition::TitledMultiSelect(_))),
        "CreateMessageRequest" => variant::<InputRequest>(json, |q| matches!(q, InputRequest::CreateMessage(_))),
        "CreateMessageRequestParams" => plain::<CreateMessageRequestParams>(json),
        "CreateMessageResult" => plain::<CreateMessageResult>(json),
        "SamplingMessage" => plain::<SamplingMessage>(json),
        "ModelPreferences" => plain::<ModelPreferences>(json),
        "ListRootsRequest" => question_with_id(json),
        "ListRootsResult" => plain::<ListRootsResult>(json),
        "Root" => plain::<Root>(json),

        // Notifications and subscriptions.
        "CancelledNotification" => notification::<CancelledNotificationParams>(json, Method::Cancelled),
        "CancelledNotificationParams" => plain::<CancelledNotificationParams>(json),
        "ProgressNotification" => notification::<ProgressNotificationParams>(json, Method::Progress),
        "ProgressNotificationParams" => plain::<ProgressNotificationParams>(json),
        "LoggingMessageNotification" => notification::<LoggingMessageNotificationParams>(json, Method::LogMessage),
        "LoggingMessageNotificationParams" => plain::<LoggingMessageNotificationParams>(json),
        "SubscriptionsListenRequest" => request::<SubscriptionsListenRequestParams>(json, Method::Listen),
        "SubscriptionsListenResult" => result::<SubscriptionsListenResult>(json),
        "SubscriptionsListenResultResponse" => response::<SubscriptionsListenResult>(json),
        "SubscriptionsAcknowledgedNotification" => notification::<SubscriptionsAcknowledgedNotificationParams>(json, Method::Acknowledged),

        // Errors: some examples are the error object, others the whole response.
        "ParseError" => error(json, code::PARSE),
        "MethodNotFoundError" => error(json, code::METHOD_NOT_FOUND),
        "InvalidParamsError" => error(json, code::INVALID_PARAMS),
        "InternalError" => error(json, code::INTERNAL),
        "HeaderMismatchError" => error_response(json, code::HEADER_MISMATCH),
        "MissingRequiredClientCapabilityError" => error_response(json, code::MISSING_CAPABILITY),
        "UnsupportedProtocolVersionError" => error_response(json, code::UNSUPPORTED_VERSION),

        _ => Err("no row in the table for this type".to_owned()),
    }
}

fn plain<T: Serialize + DeserializeOwned>(json: &str) -> Verdict {
    variant::<T>(json, |_| true)
}

/// Also checks the variant: a catch-all variant would serialize any JSON unchanged.
fn variant<T: Serialize + DeserializeOwned>(json: &str, check: fn(&T) -> bool) -> Verdict {
    let value: T = serde_json::from_str(json).map_err(|e| e.to_string())?;
    if !check(&value) {
        return Err("read as another variant".to_owned());
    }
    let printed = serde_json::to_string(&value).map_err(|e| e.to_string())?;
    equal(&parse(&printed)?, &parse(json)?)
}

/// Checks a form field as its own type and as a variant of all fields.
fn field<T: Serialize + DeserializeOwned>(
    json: &str,
    check: fn(&PrimitiveSchemaDefinition) -> bool,
) -> Verdict {
    plain::<T>(json).and(variant::<PrimitiveSchemaDefinition>(json, check))
}

fn result<T: Serialize + DeserializeOwned>(json: &str) -> Verdict {
    plain::<WithResultType<T>>(json)
}

fn request<P: Serialize + DeserializeOwned>(json: &str, expected: Method) -> Verdict {
    match classify(json)? {
        Message::Request { method, params, .. } if *method == *expected.as_str() => {
            plain::<P>(params.ok_or("no params")?.get())
        }
        other => Err(format!("not a request for {expected:?}: {other:?}")),
    }
}

fn notification<P: Serialize + DeserializeOwned>(json: &str, expected: Method) -> Verdict {
    match classify(json)? {
        Message::Notification { method, params } if *method == *expected.as_str() => {
            plain::<P>(params.ok_or("no params")?.get())
        }
        other => Err(format!("not a notification of {expected:?}: {other:?}")),
    }
}

fn response<T: Serialize + DeserializeOwned>(json: &str) -> Verdict {
    match classify(json)? {
        Message::Response { id: Some(_), outcome: Ok(json) } => result::<T>(json.get()),
        other => Err(format!("not a result: {other:?}")),
    }
}

fn error_response(json: &str, code: i32) -> Verdict {
    match classify(json)? {
        Message::Response { outcome: Err(json), .. } => error(json.get(), code),
        other => Err(format!("not an error: {other:?}")),
    }
}

fn error(json: &str, code: i32) -> Verdict {
    let error: ErrorObject = serde_json::from_str(json).map_err(|e| e.to_string())?;
    if error.code != code {
        return Err(format!("code {}, expected {code}", error.code));
    }
    plain::<ErrorObject>(json)
}

/// Checks the only example of an input request with an ID, which the schema does not allow.
fn question_with_id(json: &str) -> Verdict {
    let mut question = parse(json)?;
    question
        .as_object_mut()
        .and_then(|members| members.remove("id"))
        .ok_or("the example has no ID; remove this special case")?;
    variant::<InputRequest>(&question.to_string(), |q| matches!(q, InputRequest::ListRoots))
}

fn classify(json: &str) -> Result<Message<'_>, String> {
    let envelope: Envelope<'_> = serde_json::from_str(json).map_err(|e| e.to_string())?;
    envelope.classify().map_err(str::to_owned)
}

fn parse(json: &str) -> Result<Value, String> {
    serde_json::from_str(json).map_err(|e| e.to_string())
}

fn equal(printed: &Value, given: &Value) -> Verdict {
    if printed == given { Ok(()) } else { Err(format!("printed as {printed}")) }
}
