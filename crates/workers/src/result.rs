//! Last line of a run → result of its call.

use outlive::server::{CallToolResult, Error, Result};
use serde_json::value::RawValue;

use crate::line::from_worker::RunError;

/// Kind of an error whose text is for the model.
const TOOL_ERROR: &str = "ToolError";

/// Returns the result of a call for the value that its function returned.
pub(crate) fn of_value(value: &RawValue) -> Result<CallToolResult> {
    let text = value.get();
    Ok(match text.as_bytes().first() {
        Some(b'"') => CallToolResult::text(serde_json::from_str::<String>(text)?),
        Some(b'n') => CallToolResult::new([]),
        Some(b'{') => CallToolResult::text(text).with_structured_content(value.to_owned()),
        _ => CallToolResult::text(text),
    })
}

/// Returns the result that the function wrote itself.
pub(crate) fn of_result(result: &RawValue) -> Result<CallToolResult> {
    serde_json::from_str(result.get()).map_err(|error| {
        Error::new(format!("the tool worker returned an invalid `result`: {error}"))
    })
}

/// Returns the error for the model, and logs the traceback.
pub(crate) fn of_error(tool_worker: &str, tool: &str, failed: RunError) -> Error {
    let RunError { error, kind, traceback, .. } = failed;
    let kind = kind.filter(|kind| kind != TOOL_ERROR);
    if let Some(traceback) = traceback {
        let kind = kind.as_deref().unwrap_or(TOOL_ERROR);
        tracing::warn!(tool_worker, tool, kind, traceback, "a tool failed");
    }
    Error::new(match kind {
        Some(kind) if error.is_empty() => kind,
        Some(kind) => format!("{kind}: {error}"),
        None => error,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::{of_error, of_result, of_value};
    use crate::line::from_worker::RunError;

    #[track_caller]
    fn check(value: &str, expected: &str) {
        let value = RawValue::from_string(value.to_owned()).unwrap();
        let result = of_value(&value).unwrap();
        assert_eq!(serde_json::to_string(&result).unwrap(), expected);
    }

    #[test]
    fn returned_values_become_content() {
        check(r#""hi""#, r#"{"content":[{"type":"text","text":"hi"}]}"#);
        check("null", r#"{"content":[]}"#);
        check("[1]", r#"{"content":[{"type":"text","text":"[1]"}]}"#);
        check(
            r#"{"a":1}"#,
            r#"{"content":[{"type":"text","text":"{\"a\":1}"}],"structuredContent":{"a":1}}"#,
        );
    }

    #[test]
    fn error_has_its_kind_unless_it_is_for_the_model() {
        let text = |kind: Option<&str>| {
            let (error, kind) = ("disk full".to_owned(), kind.map(str::to_owned));
            let failed = RunError { error, kind, traceback: None, rejected: None };
            of_error("shop", "deploy", failed).to_string()
        };
        assert_eq!(text(Some("OSError")), "OSError: disk full");
        assert_eq!((text(Some("ToolError")), text(None)), ("disk full".into(), "disk full".into()));
    }

    #[test]
    fn invalid_result_is_an_error() {
        let result = RawValue::from_string("{\"content\":5}".to_owned()).unwrap();
        assert!(of_result(&result).unwrap_err().to_string().contains("invalid `result`"));
    }
}
