//! Scopes of access tokens.

use super::reader::{At, Problem, Result, Section};

/// Reads `scopes`, and reports invalid ones.
pub(super) fn scopes(section: &mut Section<'_>) -> Result<Vec<String>> {
    optional_scopes(section).map(Option::unwrap_or_default)
}

/// Reads `scopes` where an absent key has another meaning than an empty one.
pub(super) fn optional_scopes(section: &mut Section<'_>) -> Result<Option<Vec<String>>> {
    let Some(written) = section.read::<Vec<At<String>>>("scopes")? else { return Ok(None) };
    let mut scopes = Vec::new();
    for written in written {
        match scope(written) {
            Ok(scope) => scopes.push(scope),
            Err(problem) => section.report(problem),
        }
    }
    Ok(Some(scopes))
}

/// Reads a key with one scope, and reports an invalid one.
pub(super) fn one_scope(section: &mut Section<'_>, key: &'static str) -> Result<Option<String>> {
    let written: Option<At<String>> = section.read(key)?;
    Ok(section.attempt(|_| written.map(scope).transpose()).flatten())
}

/// Validates a scope (RFC 6749, section 3.3).
pub(super) fn scope(At { value, line }: At<String>) -> Result<String> {
    let plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\');
    match !value.is_empty() && value.bytes().all(plain) {
        true => Ok(value),
        false => Err(Problem::at(line, format_args!("`{value}` is not a valid scope"))
            .remedy("write scopes such as scopes = [\"files:read\", \"files:write\"]")),
    }
}
