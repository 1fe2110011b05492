//! The page as a resource, and the metadata that leads a host to it.

use outlive_wire::{ClientCapabilities, Meta, ResourceContents, TextResourceContents};
use serde_json::{Value, json};

/// URI of the page.
pub(crate) const URI: &str = "ui://outlive/task";

/// The extension that clients declare if they render pages.
const EXTENSION: &str = "io.modelcontextprotocol/ui";

/// MIME type that marks a page as an MCP App.
const MIME_TYPE: &str = "text/html;profile=mcp-app";

/// Member of `_meta` with the settings of the extension.
const META: &str = "ui";

const HTML: &str = include_str!("task.html");

/// Returns the page, with a content security policy that permits no domain.
pub(crate) fn contents() -> ResourceContents {
    ResourceContents::Text(TextResourceContents {
        uri: URI.to_owned(),
        mime_type: Some(MIME_TYPE.to_owned()),
        text: HTML.to_owned(),
        meta: Some(Meta::default().with(META, json!({"csp": {}, "prefersBorder": true}))),
    })
}

/// Returns the `_meta` of a listed tool whose results the page shows.
pub(crate) fn tool_meta() -> Meta {
    Meta::default().with(META, json!({"resourceUri": URI}))
}

/// Returns whether a client renders the page. `capabilities` is the JSON text of its capabilities.
pub(crate) fn is_declared(capabilities: &str) -> bool {
    let declared: ClientCapabilities = serde_json::from_str(capabilities).unwrap_or_default();
    let types =
        declared.extensions.and_then(|mut all| all.remove(EXTENSION)?.get("mimeTypes").cloned());
    types
        .as_ref()
        .and_then(Value::as_array)
        .is_some_and(|types| types.iter().any(|it| it == MIME_TYPE))
}

#[cfg(test)]
mod tests {
    use super::{HTML, MIME_TYPE, URI, contents, is_declared, tool_meta};

    #[test]
    fn page_fits_size_limit() {
        assert!(HTML.len() <= 30 << 10, "{} bytes", HTML.len());
    }

    #[test]
    fn page_has_one_script_and_one_style_without_references() {
        for (tag, count) in
            [("<script", 1), ("<style", 1), ("<link", 0), ("<iframe", 0), ("<base", 0)]
        {
            assert_eq!(HTML.matches(tag).count(), count, "{tag}");
        }
        let references =
            ["http:", "https:", "//cdn", "url(", "@import", " src=", " href=", " action="];
        for reference in references {
            assert!(!HTML.contains(reference), "{reference}");
        }
    }

    #[test]
    fn page_sends_no_request_and_inserts_no_html() {
        let forbidden = [
            "fetch(",
            "XMLHttpRequest",
            "WebSocket",
            "EventSource",
            "sendBeacon",
            "import(",
            "Worker(",
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "DOMParser",
            "srcdoc",
            "eval(",
            "Function(",
            "localStorage",
            "document.cookie",
        ];
        for name in forbidden {
            assert!(!HTML.contains(name), "{name}");
        }
    }

    #[test]
    fn page_has_no_event_handler_attributes() {
        let handlers =
            HTML.split('<').filter(|tag| tag.starts_with(|first: char| first.is_ascii_lowercase()));
        let tags = handlers.filter_map(|tag| tag.split_once('>')).map(|(tag, _)| tag);
        for tag in tags {
            assert!(!tag.contains(" on"), "{tag}");
        }
    }

    #[test]
    fn contents_have_type_and_empty_policy() {
        let contents = serde_json::to_value(contents()).unwrap();
        assert_eq!(contents["uri"], URI);
        assert_eq!(contents["mimeType"], MIME_TYPE);
        assert_eq!(contents["_meta"]["ui"]["csp"], serde_json::json!({}));
        assert!(contents["text"].as_str().unwrap().starts_with("<!doctype html>"));
    }

    #[test]
    fn tool_meta_names_page() {
        let meta = serde_json::to_string(&tool_meta()).unwrap();
        assert_eq!(meta, r#"{"ui":{"resourceUri":"ui://outlive/task"}}"#);
    }

    #[test]
    fn client_with_extension_and_type_is_declared() {
        let declared = r#"{"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]}}}"#;
        assert!(is_declared(declared));
        let others = [
            "{}",
            "no JSON",
            r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#,
            r#"{"extensions":{"io.modelcontextprotocol/ui":{}}}"#,
            r#"{"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["text/uri-list"]}}}"#,
        ];
        for capabilities in others {
            assert!(!is_declared(capabilities), "{capabilities}");
        }
    }
}
