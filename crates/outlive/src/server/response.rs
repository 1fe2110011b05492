//! Traits that convert return values of handlers into protocol results.

pub use super::{
    extract::response::{IntoRawResult, IntoToolResult, OutputSchema, Returned},
    register::{
        completers::{CompletionInput, IntoCompletion},
        prompt::IntoPromptResult,
        resource::IntoResourceContents,
    },
};
pub use outlive_protocol::{RelayedResult, RelayedResultError};
