//! Serializes requests of both eras.

use super::codec::Outgoing;
use crate::era::error::put;

/// Writes a request: the parameters as given, then `_meta` with the concatenated parts of
/// `own_meta`.
pub(in crate::era) fn write(request: &Outgoing<'_>, own_meta: &[&str], out: &mut Vec<u8>) {
    out.extend_from_slice(br#"{"jsonrpc":"2.0","#);
    if let Some(id) = request.id {
        out.extend_from_slice(format!(r#""id":{id},"#).as_bytes());
    }
    out.extend_from_slice(br#""method":"#);
    put(&request.method, out);
    let params = request.params.trim_ascii();
    let params = params.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or("");
    let params = params.trim_ascii();
    let has_meta = !own_meta.is_empty() || !request.meta.is_empty();
    let has_members = request.members.iter().any(|part| !part.is_empty());
    if has_meta || has_members || !params.is_empty() {
        out.extend_from_slice(br#","params":{"#);
        out.extend_from_slice(params.as_bytes());
        if has_members {
            if !params.is_empty() {
                out.push(b',');
            }
            request.members.iter().for_each(|part| out.extend_from_slice(part.as_bytes()));
        }
        if has_meta {
            if has_members || !params.is_empty() {
                out.push(b',');
            }
            out.extend_from_slice(br#""_meta":{"#);
            own_meta.iter().for_each(|part| out.extend_from_slice(part.as_bytes()));
            if !own_meta.is_empty() && !request.meta.is_empty() {
                out.push(b',');
            }
            out.extend_from_slice(request.meta.as_bytes());
            out.push(b'}');
        }
        out.push(b'}');
    }
    out.push(b'}');
}
