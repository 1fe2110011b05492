//! What tools may return.

use outlive_schema::{Schema, SchemaError};
use outlive_wire::{CallToolResult, ContentBlock, RawJson, Resource};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::to_raw_value;

use crate::server::{
    error::{Error, Result},
    run::input_request_set::{InputRequestSet, RoundOutcome},
};

/// Something a tool can return.
#[diagnostic::on_unimplemented(
    message = "a tool cannot return `{Self}`",
    note = "return text, `ContentBlock`s, a `CallToolResult`, or `Json<{Self}>`, each also in a `Result`"
)]
pub trait IntoToolResult: Send + 'static {
    /// Makes the result.
    ///
    /// # Errors
    ///
    /// When the work failed or its value cannot be written as JSON.
    fn into_tool_result(self) -> Result<CallToolResult>;

    /// Whether a value may hold input requests instead of a result.
    const ASKS: bool = false;

    /// Makes the result, or hands over the input requests. A type that wraps another forwards to it.
    ///
    /// # Errors
    ///
    /// When the work failed or its value cannot be written as JSON.
    fn into_returned(self) -> Result<Returned<CallToolResult>>
    where
        Self: Sized,
    {
        self.into_tool_result().map(Returned::Result)
    }

    /// Schema of the structured content, if there is one. A type that wraps another forwards to it.
    fn output_schema() -> Option<OutputSchema> {
        None
    }
}

/// What a handler has returned: a result, or input requests for the client.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "a handler returns one of the two")]
pub enum Returned<T> {
    /// Result of the call.
    Result(T),
    /// Input requests, before there can be a result.
    Ask(InputRequestSet),
}

impl<T: IntoToolResult> IntoToolResult for RoundOutcome<T> {
    const ASKS: bool = true;

    fn into_tool_result(self) -> Result<CallToolResult> {
        match self {
            Self::Done(result) => result.into_tool_result(),
            Self::Ask(_) => Err(Error::new("questions where only a result can be")),
        }
    }

    fn into_returned(self) -> Result<Returned<CallToolResult>> {
        match self {
            Self::Done(result) => result.into_returned(),
            Self::Ask(questions) => Ok(Returned::Ask(questions)),
        }
    }

    fn output_schema() -> Option<OutputSchema> {
        T::output_schema()
    }
}

/// Schema of a tool's structured content, made by [`Json`].
#[derive(Debug)]
pub struct OutputSchema(pub(crate) std::result::Result<Schema, SchemaError>);

/// Structured content: the value, its schema in the list of tools, and its text for clients that
/// read no structure.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "handlers build it")]
pub struct Json<T>(pub T);

impl<T: Serialize + JsonSchema + Send + 'static> IntoToolResult for Json<T> {
    fn into_tool_result(self) -> Result<CallToolResult> {
        let json = to_raw_value(&self.0)?;
        Ok(CallToolResult::text(json.get()).with_structured_content(json))
    }

    fn output_schema() -> Option<OutputSchema> {
        Some(OutputSchema(Schema::of_output::<T>()))
    }
}

impl<T: IntoToolResult, E: Into<Error> + Send + 'static> IntoToolResult for Result<T, E> {
    const ASKS: bool = T::ASKS;

    fn into_tool_result(self) -> Result<CallToolResult> {
        self.map_err(Into::into)?.into_tool_result()
    }

    fn into_returned(self) -> Result<Returned<CallToolResult>> {
        self.map_err(Into::into)?.into_returned()
    }

    fn output_schema() -> Option<OutputSchema> {
        T::output_schema()
    }
}

impl<T: IntoToolResult> IntoToolResult for Option<T> {
    fn into_tool_result(self) -> Result<CallToolResult> {
        self.ok_or_else(Error::not_found)?.into_tool_result()
    }

    fn output_schema() -> Option<OutputSchema> {
        T::output_schema()
    }
}

macro_rules! into_tool_result {
    ($($type:ty, $value:ident => $result:expr;)*) => {$(
        impl IntoToolResult for $type {
            fn into_tool_result(self) -> Result<CallToolResult> {
                let $value = self;
                Ok($result)
            }
        }
    )*};
}

into_tool_result! {
    CallToolResult, result => result;
    String, text => CallToolResult::text(text);
    &'static str, text => CallToolResult::text(text);
    (), _nothing => CallToolResult::new([]);
    ContentBlock, block => CallToolResult::new([block]);
    Vec<ContentBlock>, blocks => CallToolResult { content: blocks, ..CallToolResult::default() };
    Resource, link => CallToolResult::new([ContentBlock::resource_link(link)]);
}

/// Something a method of your own can return: an object.
pub trait IntoRawResult: Send + 'static {
    /// Makes the JSON.
    ///
    /// # Errors
    ///
    /// When the work failed or its value is not a JSON object.
    fn into_raw_result(self) -> Result<RawJson>;
}

impl IntoRawResult for RawJson {
    fn into_raw_result(self) -> Result<RawJson> {
        match self.get().starts_with('{') {
            true => Ok(self),
            false => Err(Error::new("the result of a method must be a JSON object")),
        }
    }
}

impl IntoRawResult for () {
    fn into_raw_result(self) -> Result<RawJson> {
        Ok(to_raw_value(&serde_json::Map::new())?)
    }
}

impl<T: Serialize + Send + 'static> IntoRawResult for Json<T> {
    fn into_raw_result(self) -> Result<RawJson> {
        to_raw_value(&self.0)?.into_raw_result()
    }
}

impl<T: IntoRawResult, E: Into<Error> + Send + 'static> IntoRawResult for Result<T, E> {
    fn into_raw_result(self) -> Result<RawJson> {
        self.map_err(Into::into)?.into_raw_result()
    }
}
