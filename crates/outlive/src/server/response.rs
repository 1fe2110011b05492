//! Return values of handlers: the traits that turn them into results of the protocol.

pub use super::{
    extract::response::{IntoRawResult, IntoToolResult, OutputSchema, Returned},
    register::{
        completers::{CompletionInput, IntoCompletion},
        prompt::IntoPromptResult,
        resource::IntoResourceContents,
    },
};
