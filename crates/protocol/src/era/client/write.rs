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
    let members = request.params.trim_ascii();
    let members = members.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or("");
    let members = members.trim_ascii();
    let has_meta = !own_meta.is_empty() || !request.meta.is_empty();
    if has_meta || !members.is_empty() {
        out.extend_from_slice(br#","params":{"#);
        out.extend_from_slice(members.as_bytes());
        if has_meta {
            if !members.is_empty() {
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
