//! Results of other servers: their members pass, apart from those that a version lacks.

use outlive::server::{Server, Tool, response::RelayedResult};
use serde_json::{Value, json};

use crate::support::pipe::{MODERN, Pipe, REVISIONS};

/// Calls a tool that returns this result of another server.
async fn relayed(version: &str, result: &Value) -> Value {
    let text = result.to_string();
    let handler = move || {
        let text = text.clone();
        async move { RelayedResult::new(text).unwrap() }
    };
    let server = Server::builder("near", "1").tool(Tool::new("far", handler)).build().unwrap();
    Pipe::speaking(&server, version).await.call("far", json!({})).await
}

#[tokio::test(start_paused = true)]
async fn members_of_connection_are_replaced() {
    let result = json!({
        "resultType": "complete",
        "content": [],
        "_meta": {
            "far/x": 1,
            "io.modelcontextprotocol/serverInfo": {"name": "far", "version": "1"},
            "io.modelcontextprotocol/related-task": {"taskId": "1"},
        },
    });
    for version in REVISIONS {
        let mut received = relayed(version, &result).await;
        if version == MODERN {
            assert_eq!(received["resultType"], "complete");
            let meta = received["_meta"].as_object_mut().unwrap();
            let info = meta.remove("io.modelcontextprotocol/serverInfo").unwrap();
            assert_eq!(info["name"], "near");
            received.as_object_mut().unwrap().remove("resultType");
        }
        assert_eq!(received, json!({"content": [], "_meta": {"far/x": 1}}), "{version}");
    }
}

#[tokio::test(start_paused = true)]
async fn blocks_that_a_version_lacks_become_text() {
    let link = json!({
        "type": "resource_link", "uri": "far://a", "name": "a",
        "icons": [{"src": "https://example.com/a.png"}],
    });
    let audio = json!({"type": "audio", "data": "AAAA", "mimeType": "audio/wav"});
    let text = json!({
        "type": "text", "text": "t", "_meta": {"far/x": 1},
        "annotations": {"priority": 0.5, "lastModified": "2025-01-01T00:00:00Z"},
    });
    for version in REVISIONS {
        let content = json!([link, audio, text]);
        let received = relayed(version, &json!({"content": content})).await;
        let [got_link, got_audio, got_text] =
            <[Value; 3]>::try_from(received["content"].as_array().unwrap().clone()).unwrap();
        let with_icons = if version >= "2025-11-25" {
            link.clone()
        } else {
            json!({"type": "resource_link", "uri": "far://a", "name": "a"})
        };
        match version >= "2025-06-18" {
            true => assert_eq!((got_link, &got_text), (with_icons, &text), "{version}"),
            false => {
                let plain = json!({"type": "text", "text": "t", "annotations": {"priority": 0.5}});
                assert_eq!((&got_link["type"], got_text), (&json!("text"), plain), "{version}");
            }
        }
        match version >= "2025-03-26" {
            true => assert_eq!(got_audio, audio, "{version}"),
            false => assert_eq!(got_audio["type"], "text", "{version}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn structured_content_is_left_out_where_version_lacks_it() {
    for (structured, since) in [(json!({"a": 1}), "2025-06-18"), (json!([1]), MODERN)] {
        for version in REVISIONS {
            let result = json!({"content": [], "structuredContent": structured});
            let received = relayed(version, &result).await;
            let has = received.get("structuredContent").is_some();
            assert_eq!(has, version >= since, "{version}: {received}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn result_with_line_ends_is_one_message_on_stdio() {
    let handler = async || RelayedResult::new("{\r\n  \"content\": [\n]\r\n}").unwrap();
    let server = Server::builder("near", "1").tool(Tool::new("far", handler)).build().unwrap();
    for version in REVISIONS {
        let mut pipe = Pipe::speaking(&server, version).await;
        assert_eq!(pipe.call("far", json!({})).await["content"], json!([]), "{version}");
    }
}
