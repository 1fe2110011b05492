//! Input requests in the form of the schema, and their audience.

use std::{borrow::Cow, collections::HashSet};

use serde::Serialize;

use super::{
    clock::to_column,
    column::{from_json, from_text, text, to_json, unreadable},
    error::PostgresError,
};
use crate::store::{Audience, InputRequestState, NewInputRequest, StoreError, budget};

/// Input requests to open, as JSON for `read_inputs` of the schema.
pub(super) struct Inputs {
    pub(super) json: String,
    /// Bytes of the requests in the count of their principal.
    pub(super) bytes: usize,
}

/// An input request in columns.
#[derive(Serialize)]
struct Input<'a> {
    place: usize,
    wire_key: Cow<'a, str>,
    journal_key: Cow<'a, str>,
    due_at: Option<i64>,
    body: Option<String>,
    audience: i16,
    addressees: Option<String>,
    binding: Option<String>,
    denial: Option<Cow<'a, str>>,
    bytes: usize,
}

impl Inputs {
    /// Converts input requests; `None` without requests. The first request with a wire key counts.
    pub(super) fn new(requests: &[NewInputRequest]) -> Result<Option<Self>, StoreError> {
        if requests.is_empty() {
            return Ok(None);
        }
        let mut names = HashSet::new();
        let unique = requests.iter().filter(|request| names.insert(&request.name));
        let inputs = (1..).zip(unique).map(|(place, request)| Input::new(place, request));
        let inputs = inputs.collect::<Result<Vec<_>, _>>()?;
        Ok(Some(Self { json: to_json(&inputs)?, bytes: inputs.iter().map(|one| one.bytes).sum() }))
    }
}

impl<'a> Input<'a> {
    fn new(place: usize, request: &'a NewInputRequest) -> Result<Self, StoreError> {
        Ok(Self {
            place,
            wire_key: text(&request.name),
            journal_key: text(&request.key),
            due_at: request.due.map(to_column),
            body: request.request.as_ref().map(to_json).transpose()?,
            audience: request.audience.column(),
            addressees: addressees(&request.audience).map(|all| to_json(&all)).transpose()?,
            binding: request.binding.as_ref().map(to_json).transpose()?,
            denial: request.binding.as_ref().and_then(|it| it.denial.as_deref()).map(text),
            bytes: budget::input_request(request),
        })
    }
}

/// Prefixes of names and scopes in the table `addressee`.
const NAME: &str = "n/";
const SCOPE: &str = "s/";

/// The addressee of operators, who see all open input requests.
pub(super) const OPERATORS: &str = "*";

/// Returns the addressee of a person.
pub(super) fn named(name: &str) -> String {
    format!("{NAME}{}", text(name))
}

/// Returns the addressee of the holders of a scope.
pub(super) fn with_scope(scope: &str) -> String {
    format!("{SCOPE}{}", text(scope))
}

/// Returns the addressees of an audience; `None` if the client or the caller responds. The schema
/// reads them, so they are escaped.
fn addressees(audience: &Audience) -> Option<Vec<String>> {
    let (names, scope) = audience.addressees();
    let all = names.iter().map(|name| named(name)).chain(scope.map(with_scope));
    audience.is_people().then(|| all.collect())
}

/// Reads an audience from its columns.
pub(super) fn audience(column: i16, addressees: Option<&str>) -> Result<Audience, PostgresError> {
    if let Some(audience) = Audience::from_column(column) {
        return Ok(audience);
    }
    let Some(addressees) = addressees else { return Err(unreadable("audience", &column)) };
    let (mut names, mut scope) = (Vec::new(), None);
    for addressee in from_json::<Vec<String>>("audience", addressees)? {
        match (addressee.strip_prefix(NAME), addressee.strip_prefix(SCOPE)) {
            (Some(name), _) => names.push(from_text(name.to_owned())),
            (_, Some(with)) => scope = Some(from_text(with.to_owned())),
            _ => return Err(unreadable("audience", &addressee)),
        }
    }
    Ok(match scope {
        None => Audience::Names(names),
        Some(scope) if names.is_empty() => Audience::Scope(scope),
        Some(scope) => Audience::NamesOrScope(names, scope),
    })
}

/// Reads the state of an input request.
pub(super) fn state(column: i16) -> InputRequestState {
    match column {
        0 => InputRequestState::Open,
        1 => InputRequestState::Answered,
        _ => InputRequestState::Withdrawn,
    }
}

#[cfg(test)]
mod tests {
    use super::{addressees, audience, to_json};
    use crate::store::Audience;

    #[test]
    fn audience_round_trips_unchanged() {
        let names = vec!["ann".to_owned(), "s/b\0".to_owned()];
        for one in [
            Audience::Client,
            Audience::Caller,
            Audience::Names(Vec::new()),
            Audience::Names(names.clone()),
            Audience::Scope("n/ops".to_owned()),
            Audience::NamesOrScope(names, "ops".to_owned()),
        ] {
            let json = addressees(&one).map(|all| to_json(&all).unwrap());
            assert_eq!(audience(one.column(), json.as_deref()).unwrap(), one);
        }
    }
}
