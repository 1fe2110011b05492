//! URIs in results: each is shown in the form that identifies its upstream.

use bytes::Bytes;
use outlive::server::layer::Call;
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::{Value, value::RawValue};

use super::route::Reached;
use crate::{
    names::{change_ui_uri, split_qualified},
    view::View,
};

/// Members of results that contain content blocks or contents.
const MEMBERS: [&str; 3] = ["content", "contents", "messages"];

/// Member with metadata.
const META: &str = "_meta";

/// Depth at which a content block can contain a URI.
const MAX_DEPTH: usize = 4;

/// Returns the upstream's own form of a URI.
pub(crate) fn own<'a>(upstream: &str, shown: &'a str) -> &'a str {
    match split_qualified(shown) {
        Some((name, uri)) if name == upstream => uri,
        _ => shown,
    }
}

/// The URI that a client reads: the upstream's own form, and the form that the client sent.
pub(super) type ReadUri<'a> = (&'a str, &'a str);

/// Forms in which clients see the URIs of an upstream.
struct Forms<'a> {
    upstream: &'a str,
    /// `None` if every URI identifies its upstream.
    view: Option<&'a View>,
    read: Option<ReadUri<'a>>,
}

impl Forms<'_> {
    /// Returns the form of a URI. The URI that the client reads keeps its form, whatever other
    /// upstreams list meanwhile.
    fn of(&self, uri: &str) -> String {
        match (self.read, self.view) {
            (Some((own, shown)), _) if own == uri => shown.to_owned(),
            (_, Some(view)) => view.shown_uri(self.upstream, uri).into_owned(),
            (_, None) => uri.to_owned(),
        }
    }

    /// Returns the form of the URI of a tool's view, if it is another one.
    fn of_ui(&self, uri: &str) -> Option<String> {
        self.view?.changed_ui_uri(self.upstream, uri)
    }
}

/// Returns a result whose URIs identify their upstream. Results without a URI, and those of the only
/// upstream with resources, are returned unchanged and are not parsed.
pub(super) fn shown(
    reached: &Reached,
    call: &Call,
    read: Option<ReadUri<'_>>,
    result: Bytes,
) -> Bytes {
    if !has_uri(&result) {
        return result;
    }
    let view = reached.shared.known_view(&reached.shared.view_key(call));
    let view = view.filter(|view| !view.keeps_uris());
    let read = read.filter(|(own, shown)| view.is_some() || own != shown);
    if view.is_none() && read.is_none() {
        return result;
    }
    let upstream = reached.name();
    let forms = Forms { upstream: &upstream, view: view.as_deref(), read };
    rewritten(&forms, &result).map_or(result, Bytes::from)
}

/// Replaces the URIs of one content block, as [`shown`] does in a result.
pub(super) fn show_block(reached: &Reached, call: &Call, block: &mut Value) {
    let view = reached.shared.known_view(&reached.shared.view_key(call));
    if let Some(view) = view.filter(|view| !view.keeps_uris()) {
        let upstream = reached.name();
        change(&Forms { upstream: &upstream, view: Some(&view), read: None }, block, 0);
    }
}

/// Returns whether a result may have a URI of a resource: `"uri"` or `resourceUri"`.
fn has_uri(text: &[u8]) -> bool {
    text.windows(5).any(|window| window == b"\"uri\"" || window == b"eUri\"")
}

/// The members of a result, in their order.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;

        impl<'de> Visitor<'de> for Object {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry::<String, &RawValue>()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(Object)
    }
}

/// Returns the text of a result with other URIs, or `None` if none changes. Members without content
/// are copied as they are: structured content keeps the order of its members and its numbers.
fn rewritten(forms: &Forms<'_>, result: &[u8]) -> Option<Vec<u8>> {
    let members: Members<'_> = serde_json::from_slice(result).ok()?;
    let mut out = String::with_capacity(result.len() + 256);
    let mut is_changed = false;
    for (name, value) in members.0 {
        out.push(if out.is_empty() { '{' } else { ',' });
        out.push_str(&Value::from(name.as_str()).to_string());
        out.push(':');
        let mut parsed: Option<Value> = None;
        if name == META || MEMBERS.contains(&name.as_str()) {
            parsed = serde_json::from_str(value.get()).ok();
        }
        let has_changed = parsed.as_mut().is_some_and(|parsed| match name.as_str() {
            META => change_meta(forms, parsed),
            _ => change(forms, parsed, 0),
        });
        match has_changed {
            true => {
                is_changed = true;
                out.push_str(&parsed.unwrap_or_default().to_string());
            }
            false => out.push_str(value.get()),
        }
    }
    out.push('}');
    is_changed.then(|| out.into_bytes())
}

/// Replaces the URI of a tool's view in `_meta`. Returns whether there was one to replace.
fn change_meta(forms: &Forms<'_>, meta: &mut Value) -> bool {
    meta.as_object_mut().is_some_and(|meta| change_ui_uri(meta, |uri| forms.of_ui(uri)))
}

/// Replaces the URIs of resources in content blocks. Returns whether there was one to replace.
fn change(forms: &Forms<'_>, value: &mut Value, depth: usize) -> bool {
    match value {
        Value::Array(items) if depth <= MAX_DEPTH => {
            let changes = items.iter_mut().map(|item| change(forms, item, depth + 1));
            changes.fold(false, |any, changed| any | changed)
        }
        Value::Object(members) if depth <= MAX_DEPTH => {
            let mut is_changed = false;
            if let Some(Value::String(uri)) = members.get_mut("uri") {
                let shown = forms.of(uri);
                is_changed = shown != *uri;
                *uri = shown;
            }
            if let Some(meta) = members.get_mut(META) {
                is_changed |= change_meta(forms, meta);
            }
            for name in ["content", "resource"] {
                if let Some(inner) = members.get_mut(name) {
                    is_changed |= change(forms, inner, depth + 1);
                }
            }
            is_changed
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_uri_is_the_qualified_one_without_the_name() {
        assert_eq!(own("files", "files+file:///a"), "file:///a");
        assert_eq!(own("files", "mail+file:///a"), "mail+file:///a");
        assert_eq!(own("files", "file:///a"), "file:///a");
    }

    #[test]
    fn uris_of_content_are_replaced_and_other_members_stay_as_they_are() {
        let text = br#"{"structuredContent":{"z":1,"uri":"x:1","a":1.50},"content":[
            {"type":"resource_link","uri":"x:1","name":"n"},
            {"type":"resource","resource":{"uri":"x:2","text":"t"}},{"type":"text","text":"uri"}]}"#;
        let view = View::default();
        let forms = Forms { upstream: "files", view: Some(&view), read: None };
        let changed = rewritten(&forms, text).unwrap();
        let changed = String::from_utf8(changed).unwrap();
        assert!(changed.starts_with(r#"{"structuredContent":{"z":1,"uri":"x:1","a":1.50},"#));
        assert!(
            changed.contains(r#""uri":"files+x:1""#) && changed.contains(r#""uri":"files+x:2""#)
        );
        assert!(has_uri(text) && !has_uri(br#"{"content":[{"type":"text","text":"a uri"}]}"#));
        let plain = br#"{"content":[{"type":"text","text":"no \"uri\""}]}"#;
        assert!(rewritten(&forms, plain).is_none());
    }

    #[test]
    fn uri_that_a_client_reads_keeps_the_form_of_the_client() {
        let text = br#"{"contents":[{"uri":"x:1","text":"t"},{"uri":"x:2","text":"t"}]}"#;
        let read = Some(("x:1", "files+x:1"));
        let forms = Forms { upstream: "files", view: None, read };
        let changed = String::from_utf8(rewritten(&forms, text).unwrap()).unwrap();
        assert!(changed.contains(r#""uri":"files+x:1""#) && changed.contains(r#""uri":"x:2""#));
        let view = View::default();
        let forms = Forms { view: Some(&view), read: Some(("x:1", "x:1")), ..forms };
        let changed = String::from_utf8(rewritten(&forms, text).unwrap()).unwrap();
        assert!(changed.contains(r#""uri":"x:1""#) && changed.contains(r#""uri":"files+x:2""#));
    }
}
