//! The variables of a URI template, to compare parameters with them.
//!
//! Only names are read here, and only what would make names unreadable is refused. The server
//! reads the template in full when it is registered.
//! Spec: <https://www.rfc-editor.org/rfc/rfc6570>

/// The names in the expressions of a template, or what is wrong with it.
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
                return Err(format!(
                    "`{{{expression}}}` lacks the name of a variable; write `{{name}}`"
                ));
            }
            names.push(name);
        }
        rest = after;
    }
    Ok(names)
}
