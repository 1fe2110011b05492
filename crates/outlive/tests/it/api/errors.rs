//! Conversion of anyhow, thiserror and standard library errors from and to the handler error.

use anyhow::Context;
use outlive::{
    server::{Durable, Error, HandlerError, Result, Server, Tool},
    testing::{TestOutcome, TestServer},
    wire::ErrorObject,
};
use serde_json::{Value, json};

/// Calls the only tool of a new server.
async fn call(tool: Tool) -> TestOutcome {
    let server = TestServer::new(Server::builder("errors", "1").tool(tool)).unwrap();
    server.call_tool("tool", json!({})).run().await.unwrap()
}

/// Calls a tool that fails and returns the text of its error.
async fn failure(tool: Tool) -> String {
    let outcome = call(tool).await;
    assert_eq!(outcome.result.is_error, Some(true), "{}", outcome.text());
    outcome.text()
}

fn load() -> anyhow::Result<String> {
    let digits = "4x2".parse::<u32>().context("the price list is damaged");
    digits.map(|number| number.to_string()).context("cannot load")
}

#[tokio::test]
async fn handler_returning_anyhow_result_fails_with_all_causes() {
    async fn prices() -> anyhow::Result<String> {
        load()
    }
    let text = failure(Tool::new("tool", prices)).await;
    assert_eq!(text, "cannot load: the price list is damaged: invalid digit found in string");
}

#[tokio::test]
async fn step_body_with_anyhow_error_converts_by_question_mark() {
    async fn prices(cx: Durable) -> Result<String> {
        cx.step("a", async || Ok(load()?)).await
    }
    let text = failure(Tool::new("tool", prices)).await;
    assert_eq!(text, "cannot load: the price list is damaged: invalid digit found in string");
}

#[tokio::test]
async fn text_as_error_converts_by_question_mark() {
    async fn refuses(cx: Durable) -> Result<String> {
        let count: u32 = cx.step("count", async || Ok(0)).await?;
        (count > 0).then_some(()).ok_or("nothing to pack")?;
        Err(format!("{count} parcels"))?
    }
    assert_eq!(failure(Tool::new("tool", refuses)).await, "nothing to pack");
}

#[tokio::test]
async fn boxed_error_converts_by_question_mark() {
    async fn reads() -> Result<String, Box<dyn std::error::Error + Send + Sync>> {
        Ok(std::fs::read_to_string("/no/such/file")?)
    }
    assert!(failure(Tool::new("tool", reads)).await.starts_with("No such file"));
}

/// A helper function that does not use the `Result` of this crate.
async fn reserve(cx: &Durable, article: &str) -> anyhow::Result<u32> {
    let shelf: u32 = cx.step(article, async || Err(Error::new("sold out").permanent())).await?;
    Ok(shelf)
}

#[tokio::test]
async fn helper_returning_anyhow_result_converts_step_errors_by_question_mark() {
    async fn order(cx: Durable) -> Result<String> {
        let error =
            Error::from(reserve(&cx, "lamp").await.context("the order failed").unwrap_err());
        assert!(error.is_permanent(), "the kind of the error survives anyhow and its contexts");
        let error = Error::from(reserve(&cx, "chair").await.unwrap_err());
        assert!(error.is_permanent(), "without a context too");
        Err(error)
    }
    assert_eq!(failure(Tool::new("tool", order)).await, "sold out");
}

#[derive(Debug, thiserror::Error)]
enum OrderError {
    #[error("the order cannot be filled")]
    Step(#[from] HandlerError),
    #[error("the warehouse answers nonsense")]
    Warehouse(#[from] std::num::ParseIntError),
}

async fn pack(cx: &Durable) -> Result<u32, OrderError> {
    let parcels: u32 = "2".parse()?;
    let done: u32 = cx
        .step("pack", async || Err(Error::new("out of boxes").permanent()))
        .await
        .map_err(Error::into_std)?;
    Ok(parcels + done)
}

#[tokio::test]
async fn thiserror_type_wrapping_step_error_keeps_its_kind() {
    async fn order(cx: Durable) -> Result<String, OrderError> {
        let error = pack(&cx).await.unwrap_err();
        let converted = Error::from(OrderError::from(Error::not_found().into_std()));
        assert_eq!(converted.to_string(), "not found");
        Err(error)
    }
    let text = failure(Tool::new("tool", order)).await;
    assert_eq!(text, "the order cannot be filled: out of boxes");
}

#[test]
fn error_converted_to_std_and_back_keeps_its_kind() {
    let declined = || {
        Error::from(outlive::server::durable::DurableError::Declined { key: "approve".to_owned() })
    };
    assert!(Error::from(declined().into_std()).is_declined());
    let boxed: Box<dyn std::error::Error + Send + Sync> = Box::new(declined().into_std());
    assert!(Error::from(boxed).is_declined());
    assert!(Error::from(OrderError::from(declined().into_std())).is_declined());
    assert!(HandlerError::from(Error::new("x").permanent()).as_error().is_permanent());
}

#[tokio::test]
async fn error_data_is_returned_as_structured_content() {
    async fn fails() -> Result<String> {
        Err(Error::new("sold out").data(json!({"article": "lamp"})))
    }
    let outcome = call(Tool::new("tool", fails)).await;
    assert_eq!(outcome.text(), "sold out");
    let data: Value =
        serde_json::from_str(outcome.result.structured_content.unwrap().get()).unwrap();
    assert_eq!(data, json!({"article": "lamp"}));
}

#[tokio::test]
async fn error_with_code_returns_data_in_protocol_error() {
    async fn refuses() -> Result<String> {
        Err(Error::with_code(77, "closed").data(json!({"until": "Monday"})))
    }
    async fn unfit() -> Result<String> {
        Err(Error::invalid_params("no such day").data(["Monday", "Tuesday"]))
    }
    for (tool, code, data) in [
        (Tool::new("tool", refuses), 77, json!({"until": "Monday"})),
        (Tool::new("tool", unfit), -32602, json!(["Monday", "Tuesday"])),
    ] {
        let server = Server::builder("errors", "1").tool(tool).build().unwrap();
        let client = outlive::client::Client::builder("test", "1").connect(&server).await.unwrap();
        let error = client.call_tool("tool", json!({})).await.unwrap_err();
        let refused = error.server_error().unwrap();
        let error =
            ErrorObject { code: refused.code, message: String::new(), data: refused.data.clone() };
        let json = serde_json::to_value(&error).unwrap();
        assert_eq!((&json["code"], &json["data"]), (&json!(code), &data));
    }
}
