//! [`UriTemplate`]: parses a template, expands it, matches URIs.

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
    /// Reads a template such as `file:///{+path}` or `db://{table}{?limit,offset}`.
    ///
    /// # Errors
    ///
    /// When the template is malformed; the error names the place and what to write instead.
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

    /// The names of the variables, each once, in the order of the template.
    pub fn variables(&self) -> &[String] {
        &self.variables
    }

    /// Fills the template in. A variable for which `get` has no value is left out.
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

    /// The values of the variables, decoded, if the URI fits the template. Variables that the URI
    /// leaves out are not in the list; the others are in the order of [`UriTemplate::variables`].
    ///
    /// If several readings are possible, earlier variables take as much as they can. A decoded
    /// value may be anything, `../` included: what it may name is for the handler to decide.
    pub fn matches(&self, uri: &str) -> Option<Vec<(String, String)>> {
        let values = self.program.run(uri)?;
        let named = self.variables.iter().zip(values);
        Some(named.filter_map(|(name, value)| Some((name.clone(), value?))).collect())
    }
}

/// Writes one expression.
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
            // `;x` but `?x=` for an empty value.
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
