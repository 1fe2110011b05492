//! What a JSON-RPC message is, and what is none.

use outlive_wire::{Envelope, Message, Method, Version};

/// Says in one line what a message turned out to be, or why it is none.
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
        Err(why) => format!("none: {why}"),
    }
}

#[track_caller]
fn check(members: &str, expected: &str) {
    assert_eq!(classify(&format!(r#"{{"jsonrpc":"2.0",{members}}}"#)), expected, "{members}");
}

#[test]
fn id_and_method_make_a_request() {
    check(r#""id":1,"method":"ping""#, "request 1 ping -");
    check(r#""id":"a","method":"ping","params":{"x":1}"#, r#"request "a" ping {"x":1}"#);
    check(r#""id":-7,"method":"ping""#, "request -7 ping -");
    check(r#""id":"","method":"ping""#, r#"request "" ping -"#);
}

#[test]
fn an_id_keeps_every_digit() {
    check(
        r#""id":123456789012345678901234567890,"method":"ping""#,
        "request 123456789012345678901234567890 ping -",
    );
}

#[test]
fn key_order_does_not_matter() {
    let json = r#"{"params":{},"method":"tools/call","id":3,"jsonrpc":"2.0"}"#;
    assert_eq!(classify(json), "request 3 tools/call {}");
}

#[test]
fn no_id_makes_a_notification() {
    check(r#""method":"notifications/initialized""#, "notification notifications/initialized -");
}

#[test]
fn an_id_is_a_string_or_an_integer() {
    for id in ["null", "1.5", "1.0", "1e3", "true", "{}", "[1]"] {
        check(
            &format!(r#""id":{id},"method":"ping""#),
            "none: `id` must be a string or an integer",
        );
    }
}

#[test]
fn a_result_needs_an_id() {
    check(r#""id":1,"result":{}"#, "result 1 {}");
    check(r#""result":{}"#, "none: a result needs the `id` of its request");
    check(r#""id":null,"result":{}"#, "none: a result needs the `id` of its request");
    check(r#""id":1.5,"result":{}"#, "none: a result needs the `id` of its request");
}

#[test]
fn a_null_result_is_a_result() {
    check(r#""id":1,"result":null"#, "result 1 null");
}

#[test]
fn an_error_may_lack_the_id() {
    check(r#""id":1,"error":{"code":1}"#, r#"error 1 {"code":1}"#);
    check(r#""error":{}"#, "error - {}");
    check(r#""id":null,"error":{}"#, "error - {}");
    check(r#""id":1.5,"error":{}"#, "none: `id` must be a string or an integer");
}

#[test]
fn a_message_is_one_thing_only() {
    check(r#""id":1,"result":{},"error":{}"#, "none: a response has `result` or `error`, not both");
    check(
        r#""id":1,"method":"ping","result":{}"#,
        "none: a message has `method`, or `result`, or `error`",
    );
    check(r#""method":"ping","error":{}"#, "none: a message has `method`, or `result`, or `error`");
    check(r#""id":1"#, "none: `method` is missing");
}

#[test]
fn params_are_an_object() {
    for params in ["null", "1", "\"x\"", "true"] {
        check(
            &format!(r#""id":1,"method":"ping","params":{params}"#),
            "none: `params` must be an object",
        );
    }
}

#[test]
fn the_version_of_json_rpc_is_2_0() {
    for json in [
        r#"{"id":1,"method":"ping"}"#,
        r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
        r#"{"jsonrpc":null,"id":1,"method":"ping"}"#,
    ] {
        assert_eq!(classify(json), "none: `jsonrpc` must be \"2.0\"", "{json}");
    }
}

#[test]
fn a_refusal_repeats_only_a_proper_id() {
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
fn an_escaped_method_is_the_same_method() {
    check(r#""method":"tools\/call""#, "notification tools/call -");
}

#[test]
fn names_of_methods_and_versions_read_back() {
    for method in Method::ALL {
        assert_eq!(Method::parse(method.as_str()), Some(*method));
    }
    for version in Version::ALL {
        assert_eq!(Version::parse(version.as_str()), Some(version));
    }
    assert!(Version::ALL.is_sorted());
}
