//! Round trips of single types, with inline JSON. Most new tests belong here.

use outlive_wire::{
    Annotations, CacheScope, CallToolResult, CancelledNotificationParams, ClientCapabilities,
    ContentBlock, ElicitRequestParams, ElicitResult, EmptyResult, Icon, InitializeRequestParams,
    InputRequest, InputRequests, ListToolsResult, LoggingLevel, Meta, MetaKeyError,
    PrimitiveSchemaDefinition, ProgressNotificationParams, ProgressToken, RequestMetaObject,
    RequestedSchema, ResourceContents, SamplingMessage, SamplingMessageContentBlock,
    SubscriptionFilter, Tool, WithResultType,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

/// Deserializes and serializes `json`. The bytes must not change.
#[track_caller]
fn same<T: Serialize + DeserializeOwned>(json: &str) -> T {
    let value: T = serde_json::from_str(json).expect(json);
    assert_eq!(serde_json::to_string(&value).expect(json), json);
    // Repeated with a `Value`, from which strings cannot be borrowed.
    let expected: Value = serde_json::from_str(json).expect(json);
    let again: T = serde_json::from_value(expected.clone()).expect(json);
    assert_eq!(serde_json::to_value(&again).expect(json), expected);
    value
}

#[track_caller]
fn refused<T: DeserializeOwned + std::fmt::Debug>(json: &str, why: &str) {
    let error = serde_json::from_str::<T>(json).expect_err(json).to_string();
    assert!(error.contains(why), "{error}");
}

#[test]
fn content_block_of_every_type_round_trips() {
    let is = |json, check: fn(&ContentBlock) -> bool| {
        assert!(check(&same::<ContentBlock>(json)), "{json}");
    };
    is(r#"{"type":"text","text":"a"}"#, |b| matches!(b, ContentBlock::Text(_)));
    is(r#"{"type":"image","data":"","mimeType":"image/png"}"#, |b| {
        matches!(b, ContentBlock::Image(_))
    });
    is(r#"{"type":"audio","data":"","mimeType":"audio/wav","_meta":{"a/b":1}}"#, |b| {
        matches!(b, ContentBlock::Audio(_))
    });
    is(r#"{"type":"resource_link","uri":"a:b","name":"b","size":3}"#, |b| {
        matches!(b, ContentBlock::ResourceLink(_))
    });
    is(r#"{"type":"resource","resource":{"uri":"a:b","text":""}}"#, |b| {
        matches!(b, ContentBlock::Resource(_))
    });
}

#[test]
fn content_block_of_unknown_type_round_trips_unchanged() {
    let json = r#"{"content":[{"z":1.50,"type":"hologram","a":{"y":[]}}]}"#;
    let result: CallToolResult = serde_json::from_str(json).unwrap();
    assert!(matches!(result.content[0], ContentBlock::Unknown(_)));
    assert_eq!(serde_json::to_string(&result).unwrap(), json);

    let json = r#"{"role":"user","content":{"z":1.50,"type":"hologram"}}"#;
    let message: SamplingMessage = serde_json::from_str(json).unwrap();
    assert!(matches!(message.content.blocks(), [SamplingMessageContentBlock::Unknown(_)]));
    assert_eq!(serde_json::to_string(&message).unwrap(), json);
}

#[test]
fn content_block_without_required_member_is_rejected() {
    refused::<ContentBlock>(r#"{"type":"text"}"#, "missing field `text`");
    refused::<ContentBlock>(r#"{"text":"a"}"#, "missing field `type`");
    refused::<ResourceContents>(r#"{"uri":"a:b"}"#, "either `text` or `blob`");
    refused::<ResourceContents>(r#"{"uri":"a:b","text":"","blob":""}"#, "either `text` or `blob`");
}

#[test]
fn null_structured_content_differs_from_absent() {
    let null: CallToolResult = same(r#"{"content":[],"structuredContent":null}"#);
    assert_eq!(null.structured_content.unwrap().get(), "null");
    let absent: CallToolResult = same(r#"{"content":[]}"#);
    assert!(absent.structured_content.is_none());
}

#[test]
fn null_elicitation_content_is_absent() {
    let result: ElicitResult =
        serde_json::from_str(r#"{"action":"decline","content":null}"#).unwrap();
    assert!(result.content.is_none());
}

#[test]
fn icon_sizes_accept_one_string() {
    let icon: Icon = serde_json::from_str(r#"{"src":"a:b","sizes":"48x48  any"}"#).unwrap();
    assert_eq!(serde_json::to_string(&icon).unwrap(), r#"{"src":"a:b","sizes":["48x48","any"]}"#);
    same::<Icon>(r#"{"src":"a:b","sizes":["48x48"],"theme":"dark"}"#);
    let none: Icon = serde_json::from_str(r#"{"src":"a:b","sizes":null}"#).unwrap();
    assert_eq!(none.sizes, None);
    refused::<Icon>(r#"{"src":"a:b","sizes":48}"#, "a list of sizes");
}

#[test]
fn progress_token_keeps_string_or_integer() {
    let number: ProgressNotificationParams = same(r#"{"progressToken":1,"progress":0.5}"#);
    let string: ProgressNotificationParams = same(r#"{"progressToken":"1","progress":0.5}"#);
    assert_ne!(number.progress_token, string.progress_token);
    assert_eq!(number.progress_token, ProgressToken::from(1));
    assert_eq!(string.progress_token, ProgressToken::from("1"));
    // Not with a `Value`, which would round the number.
    let long = "123456789012345678901234567890";
    assert_eq!(serde_json::from_str::<ProgressToken>(long).unwrap().as_raw().get(), long);
    for wrong in ["null", "1.5", "true", "{}", "[]"] {
        refused::<ProgressToken>(wrong, "expected a string or an integer");
    }
}

#[test]
fn cancellation_without_request_id_is_valid() {
    let params: CancelledNotificationParams = same("{}");
    assert_eq!(params.request_id, None);
}

#[test]
fn whole_numbers_serialize_without_fraction() {
    same::<ProgressNotificationParams>(r#"{"progressToken":1,"progress":50,"total":100}"#);
    same::<ProgressNotificationParams>(r#"{"progressToken":1,"progress":-0.25,"total":1e+300}"#);
    same::<Annotations>(r#"{"priority":1}"#);
    assert_eq!(
        serde_json::to_string(&Annotations::new().with_priority(0.0)).unwrap(),
        r#"{"priority":0}"#
    );
}

#[test]
fn schemas_keep_member_order_and_digits() {
    let json = r#"{"name":"t","inputSchema":{"type":"object","required":["b"],"properties":{"b":{"maximum":1.50,"minimum":10000000000000000000000},"a":{}}},"outputSchema":{ "z" : [] }}"#;
    let tool: Tool = serde_json::from_str(json).unwrap();
    assert_eq!(serde_json::to_string(&tool.clone()).unwrap(), json);
    let list: ListToolsResult = serde_json::from_str(&format!(r#"{{"tools":[{json}]}}"#)).unwrap();
    assert_eq!(serde_json::to_string(&list.tools[0]).unwrap(), json);
}

#[test]
fn tool_keeps_legacy_execution() {
    same::<Tool>(r#"{"name":"t","inputSchema":{},"execution":{"taskSupport":"optional"}}"#);
}

#[test]
fn unknown_members_are_ignored() {
    let root: ClientCapabilities =
        serde_json::from_str(r#"{"roots":{"listChanged":true,"new":1},"new":{}}"#).unwrap();
    assert_eq!(serde_json::to_string(&root).unwrap(), r#"{"roots":{"listChanged":true}}"#);
}

#[test]
fn initialize_params_round_trip() {
    let params: InitializeRequestParams = same(
        r#"{"protocolVersion":"2025-11-25","capabilities":{"roots":{"listChanged":true},"sampling":{},"tasks":{"list":{}}},"clientInfo":{"name":"c","version":"1"}}"#,
    );
    assert_eq!(params.capabilities.tasks, Some(json!({"list": {}})));
}

#[test]
fn subscription_filter_keeps_extension_members() {
    let filter: SubscriptionFilter = same(r#"{"toolsListChanged":true,"taskIds":["a"]}"#);
    assert_eq!(filter.extensions["taskIds"], json!(["a"]));
    assert_eq!(same::<SubscriptionFilter>("{}"), SubscriptionFilter::default());
}

#[test]
fn form_field_type_follows_from_shape() {
    use PrimitiveSchemaDefinition as Field;
    let is = |json, check: fn(&Field) -> bool| assert!(check(&same::<Field>(json)), "{json}");
    is(r#"{"type":"string","format":"date-time"}"#, |f| matches!(f, Field::String(_)));
    is(r#"{"type":"number","minimum":0,"maximum":1.5}"#, |f| matches!(f, Field::Number(_)));
    is(r#"{"type":"integer","maximum":9223372036854775809}"#, |f| matches!(f, Field::Number(_)));
    is(r#"{"type":"boolean","default":true}"#, |f| matches!(f, Field::Boolean(_)));
    is(r#"{"type":"string","enum":["a"]}"#, |f| matches!(f, Field::UntitledSingleSelect(_)));
    is(r#"{"type":"string","oneOf":[{"const":"a","title":"A"}]}"#, |f| {
        matches!(f, Field::TitledSingleSelect(_))
    });
    is(r#"{"type":"array","minItems":1,"items":{"type":"string","enum":["a"]}}"#, |f| {
        matches!(f, Field::UntitledMultiSelect(_))
    });
    is(r#"{"type":"array","items":{"anyOf":[{"const":"a","title":"A"}]}}"#, |f| {
        matches!(f, Field::TitledMultiSelect(_))
    });
    is(r#"{"type":"string","enum":["a"],"enumNames":["A"]}"#, |f| {
        matches!(f, Field::LegacyTitled(_))
    });
    is(r#"{"type":"string","format":"hostname"}"#, |f| matches!(f, Field::Unknown(_)));
    is(r##"{"$ref":"#/$defs/x"}"##, |f| matches!(f, Field::Unknown(_)));
    is(r#"{"type":"object","properties":{}}"#, |f| matches!(f, Field::Unknown(_)));
    is("true", |f| matches!(f, Field::Unknown(_)));
}

#[test]
fn form_keeps_field_order() {
    let form: RequestedSchema = serde_json::from_str(
        r#"{"properties":{"z":{"type":"boolean"},"a":{"type":"string"}},"type":"object"}"#,
    )
    .unwrap();
    let names: Vec<_> = form.properties.iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["z", "a"]);
}

#[test]
fn elicitation_without_mode_is_form() {
    let form = r#"{"message":"m","requestedSchema":{"type":"object","properties":{}}}"#;
    assert!(matches!(same(form), ElicitRequestParams::Form(_)));
    let url = r#"{"mode":"url","message":"m","url":"https://a","elicitationId":"1"}"#;
    assert!(matches!(same(url), ElicitRequestParams::Url(_)));
    refused::<ElicitRequestParams>(r#"{"mode":"song","message":"m"}"#, "unknown variant `song`");
}

#[test]
fn input_requests_keep_order_and_kind() {
    let json = r#"{"z":{"method":"roots/list"},"a":{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}},"b":{"method":"x/y","params":[1.50]}}"#;
    let questions: InputRequests = serde_json::from_str(json).unwrap();
    assert!(matches!(questions.get("z"), Some(InputRequest::ListRoots)));
    assert!(matches!(questions.get("a"), Some(InputRequest::CreateMessage(_))));
    assert!(matches!(questions.get("b"), Some(InputRequest::Unknown(_))));
    assert_eq!(serde_json::to_string(&questions).unwrap(), json);
    refused::<InputRequest>(r#"{"method":"elicitation/create"}"#, "missing field `params`");
}

#[test]
fn unknown_cache_hints_are_accepted() {
    let stamped: WithResultType<EmptyResult> =
        serde_json::from_str(r#"{"ttlMs":-1,"cacheScope":"galaxy"}"#).unwrap();
    assert_eq!(stamped.ttl_ms, Some(-1));
    assert_eq!(stamped.cache_scope, Some(CacheScope::Private));
    assert_eq!(stamped.result_type, None);
}

#[test]
fn logging_levels_are_ordered_as_in_syslog() {
    assert!(LoggingLevel::ALL.is_sorted());
    for level in LoggingLevel::ALL {
        assert_eq!(serde_json::to_value(level).unwrap(), level.as_str());
    }
    assert!(LoggingLevel::Warning < LoggingLevel::Error);
}

#[test]
fn request_meta_object_reads_the_meta_keys() {
    let meta = Meta::default()
        .with(Meta::PROTOCOL_VERSION, "2026-07-28")
        .with(Meta::CLIENT_CAPABILITIES, json!({}))
        .with(Meta::CLIENT_INFO, json!({"name": "c", "version": "1"}))
        .with(Meta::LOG_LEVEL, "alert")
        .with(Meta::PROGRESS_TOKEN, 7);
    let json = serde_json::to_string(&meta).unwrap();
    let read: RequestMetaObject<'_> = serde_json::from_str(&json).unwrap();
    assert_eq!(read.protocol_version.as_deref(), Some("2026-07-28"));
    assert_eq!(read.client_capabilities.unwrap().get(), "{}");
    assert_eq!(read.client_info.unwrap().get(), r#"{"name":"c","version":"1"}"#);
    assert_eq!(read.log_level, Some(LoggingLevel::Alert));
    assert_eq!(read.progress_token.unwrap().get(), "7");
}

#[test]
fn meta_key_check_follows_grammar() {
    let free = Ok(());
    let prefix = Err(MetaKeyError::Prefix);
    let name = Err(MetaKeyError::Name);
    let reserved = Err(MetaKeyError::Reserved);
    for (key, expected) in [
        ("trace", free),
        ("", free),
        ("a", free),
        ("a-b_c.d", free),
        ("0", free),
        ("com.example/trace", free),
        ("com.example/", free),
        ("a/b", free),
        ("a1-b.c9/x", free),
        ("com.example.mcp/x", free),
        ("mcp/x", free),
        ("modelcontextprotocol/x", free),
        ("com.mcpx/x", free),
        ("mcp", free),
        // Reserved by 2026-07-28: the second label.
        ("io.modelcontextprotocol/x", reserved),
        ("dev.mcp/x", reserved),
        ("com.mcp.tools/x", reserved),
        // Reserved by older versions: any label except the last.
        ("modelcontextprotocol.io/x", reserved),
        ("mcp.dev/x", reserved),
        ("api.modelcontextprotocol.org/x", reserved),
        ("com.example.mcp.tools/x", reserved),
        ("/x", prefix),
        (".a/x", prefix),
        ("a./x", prefix),
        ("a..b/x", prefix),
        ("1a/x", prefix),
        ("a-/x", prefix),
        ("-a/x", prefix),
        ("a_b/x", prefix),
        ("a.1b/x", prefix),
        ("é/x", prefix),
        ("-a", name),
        ("a-", name),
        ("_a", name),
        ("a.", name),
        ("a b", name),
        ("é", name),
        ("a/b/c", name),
        ("dev.mcp/-", name),
    ] {
        assert_eq!(Meta::check_key(key), expected, "{key}");
    }
}
