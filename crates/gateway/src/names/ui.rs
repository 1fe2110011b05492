//! The resource that shows a tool: `_meta.ui.resourceUri`, and its older form `_meta["ui/resourceUri"]`.

use serde_json::{Map, Value};

/// Older form of the member.
const FLAT: &str = "ui/resourceUri";

/// Returns the URI of the resource that shows a tool.
pub(crate) fn ui_uri(meta: &Map<String, Value>) -> Option<&str> {
    let nested = meta.get("ui").and_then(|ui| ui.get("resourceUri"));
    nested.or_else(|| meta.get(FLAT)).and_then(Value::as_str)
}

/// Replaces the URI of the resource that shows a tool. Returns whether it changed.
pub(crate) fn change_ui_uri(
    meta: &mut Map<String, Value>,
    shown: impl Fn(&str) -> Option<String>,
) -> bool {
    let mut is_changed = false;
    let mut change = |value: &mut Value| {
        if let Some(uri) = value.as_str().and_then(&shown) {
            *value = uri.into();
            is_changed = true;
        }
    };
    if let Some(uri) = meta.get_mut("ui").and_then(|ui| ui.get_mut("resourceUri")) {
        change(uri);
    }
    if let Some(uri) = meta.get_mut(FLAT) {
        change(uri);
    }
    is_changed
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn uri_is_replaced_in_both_forms_of_the_member() {
        let json = json!({"ui": {"resourceUri": "ui://a", "x": 1}, "ui/resourceUri": "ui://a"});
        let Value::Object(mut meta) = json else { panic!("no object") };
        assert_eq!(ui_uri(&meta), Some("ui://a"));
        assert!(!change_ui_uri(&mut meta, |_| None));
        assert!(change_ui_uri(&mut meta, |uri| Some(format!("files+{uri}"))));
        let expected = json!({"ui": {"resourceUri": "files+ui://a", "x": 1}, "ui/resourceUri": "files+ui://a"});
        assert_eq!(Value::Object(meta), expected);
    }
}
