//! Return types of tools and custom methods.

use outlive_protocol::RelayedResult;
use outlive_schema::{Schema, SchemaError};
use outlive_wire::{CallToolResult, ContentBlock, RawJson, Resource};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::to_raw_value;

use crate::server::{
    error::{Error, Result},
    run::input_request_set::{InputRequestSet, RoundOutcome},
};

/// A type that a tool can return.
#[diagnostic::on_unimplemented(
    message = "a tool cannot return `{Self}`",
    note = "return text, `ContentBlock`s, a `CallToolResult`, or `Json<{Self}>`, each also in a `Result`"
)]
pub trait IntoToolResult: Send + 'static {
    /// Converts the value into a tool result.
    ///
    /// # Errors
    ///
    /// Returns an error if the handler failed or its value cannot be serialized as JSON.
    fn into_tool_result(self) -> Result<CallToolResult>;

    /// Whether a value may contain input requests instead of a result.
    const ASKS: bool = false;

    /// Converts the value into a tool result or input requests. A wrapper type forwards to its
    /// inner type.
    ///
    /// # Errors
    ///
    /// Returns an error if the handler failed or its value cannot be serialized as JSON.
    fn into_returned(self) -> Result<Returned<CallToolResult>>
    where
        Self: Sized,
    {
        self.into_tool_result().map(Returned::Result)
    }

    /// Returns the schema of the structured content, if there is one. A wrapper type forwards to
    /// its inner type.
    fn output_schema() -> Option<OutputSchema> {
        None
    }
}

/// Return value of a handler: a result, of this or another server, or input requests.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "a handler returns one of the three")]
pub enum Returned<T> {
    /// Result of the call.
    Result(T),
    /// The result of another server, which clients receive unchanged.
    Relayed(Box<RelayedResult>),
    /// Input requests that must be fulfilled before there is a result.
    Ask(InputRequestSet),
}

impl IntoToolResult for RelayedResult {
    fn into_tool_result(self) -> Result<CallToolResult> {
        Ok(self.to_tool_result())
    }

    fn into_returned(self) -> Result<Returned<CallToolResult>> {
        Ok(Returned::Relayed(Box::new(self)))
    }
}

impl<T: IntoToolResult> IntoToolResult for RoundOutcome<T> {
    const ASKS: bool = true;

    fn into_tool_result(self) -> Result<CallToolResult> {
        match self {
            Self::Done(result) => result.into_tool_result(),
            Self::Ask(_) => Err(Error::new("input requests are not allowed here; return a result")),
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

/// Schema of a tool's structured content, created by [`Json`].
#[derive(Debug)]
pub struct OutputSchema(pub(crate) std::result::Result<Schema, SchemaError>);

/// Structured content of a tool. The tool list includes its schema, and the result includes the
/// JSON as text for clients without support for structured content.
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

/// A type that a custom method can return. It serializes to a JSON object.
pub trait IntoRawResult: Send + 'static {
    /// Converts the value into JSON.
    ///
    /// # Errors
    ///
    /// Returns an error if the handler failed or its value is not a JSON object.
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
