//! Variables of a URI template, for comparison with the parameters.
//!
//! Parses only the variable names. The server validates the template when it is registered.
//! Spec: <https://www.rfc-editor.org/rfc/rfc6570>

/// Returns the variable names of a template, or the reason why they cannot be parsed.
pub(crate) fn variables(template: &str) -> Result<Vec<&str>, String> {
    let mut names = Vec::new();
    let mut rest = template;
    while let Some((_, opened)) = rest.split_once('{') {
        let Some((expression, after)) = opened.split_once('}') else {
            return Err(format!("the `{{` before `{opened}` is never closed; add a `}}`"));
        };
        let list =
            expression.strip_prefix(['+', '#', '.', '/', ';', '?', '&']).unwrap_or(expression);
        for variable in list.split(',') {
            let name = variable.strip_suffix('*').unwrap_or(variable);
            let name = name.split_once(':').map_or(name, |(name, _limit)| name);
            if name.is_empty() {
                return Err(format!("`{{{expression}}}` has no variable name; write `{{name}}`"));
            }
            names.push(name);
        }
        rest = after;
    }
    Ok(names)
}
