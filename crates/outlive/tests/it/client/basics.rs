//! The same calls on every transport and in every protocol version.

use std::sync::{Arc, Mutex};

use outlive::client::{
    ClientError, Error, ServerErrorKind,
    input::{InputCallbacks, InputResponse},
    request::result_text,
};
use serde_json::json;

use super::kit::{EVERYWHERE, Place, builder, server};

#[tokio::test]
async fn tools_resources_and_prompts_work_on_every_transport() {
    for (wire, version) in EVERYWHERE {
        let place = Place::of(&server(), wire).await;
        let client = place.connect(builder(), version).await;
        if let Some(version) = version {
            assert_eq!(client.protocol_version().await.unwrap(), version);
        }
        let result = client.call_tool("add", json!({"a": 1, "b": 2})).await.unwrap();
        assert_eq!(result_text(&result), "3", "{wire:?} {version:?}");
        let read = client.read_resource("file:///a").await.unwrap();
        assert_eq!(read.contents.len(), 1);
        let prompt = client.get_prompt("hi").await.unwrap();
        assert_eq!(prompt.messages.len(), 1);
        let tools: Vec<String> = client
            .list_tools()
            .collect()
            .await
            .unwrap()
            .into_iter()
            .map(|tool| tool.name)
            .collect();
        assert_eq!(tools, ["add", "slow", "never", "greet"]);
        assert_eq!(client.list_resources().collect().await.unwrap().len(), 1);
        assert_eq!(client.list_prompts().collect().await.unwrap().len(), 1);
        assert_eq!(client.list_resource_templates().collect().await.unwrap().len(), 0);
        client.ping().await.unwrap();
        let missing = client.call_tool("nothing", json!({})).await.unwrap_err();
        assert!(matches!(missing, Error::Server(_)), "{missing}");
        let missing = client.read_resource("file:///b").await.unwrap_err();
        assert_eq!(missing.kind(), Some(ServerErrorKind::NotFound), "{missing:?}");
        client.close().await;
        let closed = client.ping().await.unwrap_err();
        assert!(matches!(closed, Error::Client(ClientError::Closed)), "{closed}");
    }
}

// MT-11
#[tokio::test]
async fn input_handler_responds_on_every_transport() {
    for (wire, version) in EVERYWHERE {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&asked);
        let answers = InputCallbacks::new().form(move |question| {
            noted.lock().unwrap().push(question.origin);
            async { InputResponse::accept(json!({"name": "Ada"})) }
        });
        let place = Place::of(&server(), wire).await;
        let client = place.connect(builder().input_handler(answers), version).await;
        let result = client.call_tool("greet", json!({})).await;
        // Forms were introduced with 2025-06-18.
        match client.protocol_version().await.unwrap().as_str() {
            "2024-11-05" | "2025-03-26" => {
                assert!(asked.lock().unwrap().is_empty());
            }
            _ => {
                assert_eq!(result_text(&result.unwrap()), "Hello, Ada!", "{wire:?} {version:?}");
                assert_eq!(asked.lock().unwrap().len(), 1);
            }
        }
    }
}

#[tokio::test]
async fn progress_reaches_callback_on_every_transport() {
    for (wire, version) in EVERYWHERE {
        let place = Place::of(&server(), wire).await;
        let client = place.connect(builder(), version).await;
        let heard = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&heard);
        let call = client.call_tool("slow", json!({}));
        call.on_progress(move |progress| noted.lock().unwrap().push(progress.progress))
            .await
            .unwrap();
        let heard = heard.lock().unwrap();
        assert_eq!(heard.last(), Some(&2.0), "{wire:?} {version:?} {heard:?}");
    }
}
