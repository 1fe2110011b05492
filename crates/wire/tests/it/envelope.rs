//! Tests of the classification of JSON-RPC messages.

use outlive_wire::{Envelope, Message, Method, Version};

/// Describes the kind of a message, or why it is invalid, in one line.
fn classify(json: &str) -> String {
    let envelope: Envelope<'_> = serde_json::from_str(json).expect(json);
    match envelope.classify() {
        Ok(Message::Request { id, method, params }) => {
            format!("request {} {} {}", id.get(), &*method, params.map_or("-", |p| p.get()))
        }
        Ok(Message::Notification { method, params }) => {
            format!("notification {} {}", &*method, params.map_or("-", |p| p.get()))
        }
        Ok(Message::Response { id, outcome }) => {
            let id = id.map_or("-", |id| id.get());
            match outcome {
                Ok(result) => format!("result {id} {}", result.get()),
                Err(error) => format!("error {id} {}", error.get()),
            }
        }
        Err(why) => format!("invalid: {why}"),
    }
}

#[track_caller]
fn check(members: &str, expected: &str) {
    assert_eq!(classify(&format!(r#"{{"jsonrpc":"2.0",{members}}}"#)), expected, "{members}");
}

#[test]
fn message_with_id_and_method_is_request() {
    check(r#""id":1,"method":"ping""#, "request 1 ping -");
    check(r#""id":"a","method":"ping","params":{"x":1}"#, r#"request "a" ping {"x":1}"#);
    check(r#""id":-7,"method":"ping""#, "request -7 ping -");
    check(r#""id":"","method":"ping""#, r#"request "" ping -"#);
}

#[test]
fn request_id_keeps_every_digit() {
    check(
        r#""id":123456789012345678901234567890,"method":"ping""#,
        "request 123456789012345678901234567890 ping -",
    );
}

#[test]
fn member_order_does_not_matter() {
    let json = r#"{"params":{},"method":"tools/call","id":3,"jsonrpc":"2.0"}"#;
    assert_eq!(classify(json), "request 3 tools/call {}");
}

#[test]
fn message_without_id_is_notification() {
    check(r#""method":"notifications/initialized""#, "notification notifications/initialized -");
}

#[test]
fn id_of_other_json_type_is_invalid() {
    for id in ["null", "1.5", "1.0", "1e3", "true", "{}", "[1]"] {
        check(
            &format!(r#""id":{id},"method":"ping""#),
            "invalid: `id` must be a string or an integer",
        );
    }
}

#[test]
fn result_without_id_is_invalid() {
    check(r#""id":1,"result":{}"#, "result 1 {}");
    check(r#""result":{}"#, "invalid: a result must have the `id` of its request");
    check(r#""id":null,"result":{}"#, "invalid: a result must have the `id` of its request");
    check(r#""id":1.5,"result":{}"#, "invalid: a result must have the `id` of its request");
}

#[test]
fn null_result_is_valid() {
    check(r#""id":1,"result":null"#, "result 1 null");
}

#[test]
fn error_without_id_is_valid() {
    check(r#""id":1,"error":{"code":1}"#, r#"error 1 {"code":1}"#);
    check(r#""error":{}"#, "error - {}");
    check(r#""id":null,"error":{}"#, "error - {}");
    check(r#""id":1.5,"error":{}"#, "invalid: `id` must be a string or an integer");
}

#[test]
fn message_with_conflicting_members_is_invalid() {
    check(
        r#""id":1,"result":{},"error":{}"#,
        "invalid: a response must have `result` or `error`, not both",
    );
    check(
        r#""id":1,"method":"ping","result":{}"#,
        "invalid: a message must have one of `method`, `result` and `error`",
    );
    check(
        r#""method":"ping","error":{}"#,
        "invalid: a message must have one of `method`, `result` and `error`",
    );
    check(r#""id":1"#, "invalid: `method` is missing");
}

#[test]
fn params_of_other_json_type_are_invalid() {
    for params in ["null", "1", "\"x\"", "true"] {
        check(
            &format!(r#""id":1,"method":"ping","params":{params}"#),
            "invalid: `params` must be an object",
        );
    }
}

#[test]
fn json_rpc_version_other_than_2_0_is_invalid() {
    for json in [
        r#"{"id":1,"method":"ping"}"#,
        r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
        r#"{"jsonrpc":null,"id":1,"method":"ping"}"#,
    ] {
        assert_eq!(classify(json), "invalid: `jsonrpc` must be \"2.0\"", "{json}");
    }
}

#[test]
fn echo_id_returns_only_valid_id() {
    let id_of = |json| {
        let envelope: Envelope<'_> = serde_json::from_str(json).unwrap();
        envelope.echo_id().map(|id| id.get().to_owned())
    };
    assert_eq!(id_of(r#"{"id":1}"#).as_deref(), Some("1"));
    assert_eq!(id_of(r#"{"id":"1"}"#).as_deref(), Some(r#""1""#));
    assert_eq!(id_of(r#"{"id":null}"#), None);
    assert_eq!(id_of(r#"{"id":1.5}"#), None);
    assert_eq!(id_of("{}"), None);
}

#[test]
fn escaped_method_name_is_decoded() {
    check(r#""method":"tools\/call""#, "notification tools/call -");
}

#[test]
fn names_of_methods_and_versions_round_trip() {
    for method in Method::ALL {
        assert_eq!(Method::parse(method.as_str()), Some(*method));
    }
    for version in Version::ALL {
        assert_eq!(Version::parse(version.as_str()), Some(version));
    }
    assert!(Version::ALL.is_sorted());
}
