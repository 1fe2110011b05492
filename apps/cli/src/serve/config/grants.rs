//! `[auth.proxy.grants]`: which users of the identity provider get which scopes.

use outlive::auth_proxy::Identity;

use super::{
    reader::{At, Problem, Read as _, Result as Read, Value},
    scopes,
};

const EXAMPLE: &str = "\"shop:operate\" = { groups = [\"ops\"] }";

/// Claims and their accepted values. A user matches if every claim matches.
#[derive(Clone, Debug, Default)]
pub(super) struct Claims(Vec<(String, Vec<String>)>);

/// A scope and its rules. A user gets the scope if one of the rules matches.
#[derive(Clone, Debug)]
pub(super) struct GrantRule {
    pub(super) scope: String,
    users: Vec<Claims>,
}

impl Claims {
    /// Reads a table of claims, each with an array of values. An empty table matches every user.
    pub(super) fn read(value: Value<'_>) -> Read<Self> {
        let entries = value.section()?.entries().into_iter();
        entries.map(|(claim, value)| Ok((claim, Vec::read(value)?))).collect::<Read<_>>().map(Self)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn fit(&self, user: &Identity) -> bool {
        self.0.iter().all(|(claim, values)| user.has(claim, values))
    }
}

impl GrantRule {
    pub(super) fn fits(&self, user: &Identity) -> bool {
        self.users.iter().any(|claims| claims.fit(user))
    }
}

/// Reads the table: scopes and the users who get them.
pub(super) fn grants(value: Option<Value<'_>>) -> Read<Vec<GrantRule>> {
    let entries = value.map(|value| Ok(value.section()?.entries())).transpose()?;
    entries.into_iter().flatten().map(|(scope, value)| grant(scope, value)).collect()
}

fn grant(scope: String, value: Value<'_>) -> Read<GrantRule> {
    let line = value.line;
    let scope = scopes::scope(At { value: scope, line }).map_err(|problem| {
        // The example for a list of scopes does not apply to a key.
        problem.remedy(EXAMPLE)
    })?;
    if value.is_string() {
        let written = String::read(value)?;
        return match written.as_str() {
            "all" => Ok(GrantRule { scope, users: vec![Claims::default()] }),
            _ => Err(Problem::at(line, format_args!("`{written}` is not a valid rule for users"))
                .remedy(format_args!("write {EXAMPLE}, or \"all\" for every user who may log in"))),
        };
    }
    let rules = if value.is_array() { value.items()? } else { vec![value] };
    let users = rules.into_iter().map(|rule| named(&scope, rule)).collect::<Read<Vec<_>>>()?;
    match users.is_empty() {
        false => Ok(GrantRule { scope, users }),
        true => Err(nobody(line, &scope)),
    }
}

/// Reads claims that match some users: neither all nor none.
fn named(scope: &str, value: Value<'_>) -> Read<Claims> {
    let line = value.line;
    let claims = Claims::read(value)?;
    if claims.is_empty() || claims.0.iter().any(|(_, values)| values.is_empty()) {
        return Err(nobody(line, scope));
    }
    Ok(claims)
}

fn nobody(line: usize, scope: &str) -> Problem {
    Problem::at(line, format_args!("the rule for the scope `{scope}` matches no users"))
        .remedy(format_args!("write {EXAMPLE}, or \"all\" for every user who may log in"))
}
