//! [`UriTemplate`]: parses and expands a template, and matches URIs.

use super::{
    matcher::Program,
    parse::{self, UriTemplateError},
    part::{Operator, Part, Variable, encode, is_reserved, is_unreserved},
};

/// A parsed URI template.
#[derive(Debug)]
pub struct UriTemplate {
    parts: Vec<Part>,
    variables: Vec<String>,
    program: Program,
}

impl UriTemplate {
    /// Parses a template such as `file:///{+path}` or `db://{table}{?limit,offset}`.
    ///
    /// # Errors
    ///
    /// If the template is invalid. The error names the position and the remedy.
    pub fn parse(template: &str) -> Result<Self, UriTemplateError> {
        let parts = parse::parse(template)?;
        let mut variables: Vec<String> = Vec::new();
        for variable in parts.iter().flat_map(Part::variables) {
            if !variables.contains(&variable.name) {
                variables.push(variable.name.clone());
            }
        }
        let program = Program::compile(&parts, &variables);
        Ok(Self { parts, variables, program })
    }

    /// Returns the names of the variables, each once, in template order.
    pub fn variables(&self) -> &[String] {
        &self.variables
    }

    /// Expands the template. Omits variables for which `get` returns `None`.
    pub fn expand(&self, get: impl Fn(&str) -> Option<String>) -> String {
        let mut uri = String::new();
        for part in &self.parts {
            match part {
                Part::Literal(units) => units.iter().for_each(|unit| unit.write(&mut uri)),
                Part::Expression { operator, variables } => {
                    expand(*operator, variables, &get, &mut uri);
                }
            }
        }
        uri
    }

    /// Returns the decoded values of the variables, if the URI matches the template. Omits
    /// variables that the URI omits; the others are in the order of [`UriTemplate::variables`].
    ///
    /// If several matches are possible, earlier variables are as long as possible. A decoded value
    /// may contain anything, including `../`, so the handler must validate it.
    pub fn matches(&self, uri: &str) -> Option<Vec<(String, String)>> {
        let values = self.program.run(uri)?;
        let named = self.variables.iter().zip(values);
        Some(named.filter_map(|(name, value)| Some((name.clone(), value?))).collect())
    }
}

/// Appends the expansion of one expression.
fn expand(
    operator: Operator,
    variables: &[Variable],
    get: &impl Fn(&str) -> Option<String>,
    uri: &mut String,
) {
    let mut before = operator.first();
    for variable in variables {
        let Some(value) = get(&variable.name) else { continue };
        uri.extend(before);
        before = Some(operator.separator());
        if operator.is_named() {
            uri.push_str(&variable.name);
            // The expansion of an empty value is `;x` but `?x=`.
            if !value.is_empty() || operator != Operator::Parameter {
                uri.push('=');
            }
        }
        let end = variable.limit.and_then(|limit| value.char_indices().nth(limit));
        let value = end.map_or(&*value, |(end, _)| &value[..end]);
        write_value(value, operator.keeps_reserved(), uri);
    }
}

fn write_value(value: &str, keep_reserved: bool, uri: &mut String) {
    for (at, character) in value.char_indices() {
        let triplet = || value.as_bytes().get(at + 1..at + 3);
        let is_triplet = character == '%'
            && triplet().is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let keep =
            is_unreserved(character) || keep_reserved && (is_reserved(character) || is_triplet);
        if keep { uri.push(character) } else { encode(character, uri) }
    }
}
