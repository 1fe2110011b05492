//! Which branch of an `anyOf` or `oneOf` a value was meant for, and why it does not fit that one.
//!
//! That a value fits none of five branches helps nobody. What a caller wrote usually shows which
//! one they had in mind: by its type, by its tag, by its members.

use jsonschema::{ValidationError, error::ValidationErrorKind as Kind};
use serde_json::Value;

use super::{
    message::{lacks, message, types},
    quote::{list, quoted, shortened, values},
};

/// The place and the message to show for an error.
pub(super) struct Reason<'e> {
    pub(super) path: &'e str,
    pub(super) message: String,
}

type Branches = [Vec<ValidationError<'static>>];

impl<'e> Reason<'e> {
    pub(super) fn at(error: &'e ValidationError<'_>, message: String) -> Self {
        Self { path: error.instance_path().as_str(), message }
    }

    /// The reason that `error` gives, or the branch of it that was meant.
    pub(super) fn of(error: &'e ValidationError<'_>, schema: &Value) -> Self {
        let (Kind::AnyOf { context } | Kind::OneOfNotValid { context }) = error.kind() else {
            return Self::at(error, message(error, schema));
        };
        let here = error.instance_path().as_str();
        match meant(context, here) {
            Some(inner) => Self::of(inner, schema),
            None => by_members(error, context)
                .or_else(|| by_kind(error, context))
                .unwrap_or_else(|| each(error, context, schema)),
        }
    }
}

/// The required members that the object at `here` lacks, for one branch.
fn missing<'e>(errors: &'e [ValidationError<'_>], here: &str) -> Vec<&'e str> {
    errors
        .iter()
        .filter(|error| error.instance_path().as_str() == here)
        .filter_map(|error| match error.kind() {
            Kind::Required { property } => property.as_str(),
            _ => None,
        })
        .collect()
}

/// The first error of the only branch that is left when those are gone that are clearly not meant.
fn meant<'e>(branches: &'e Branches, here: &str) -> Option<&'e ValidationError<'static>> {
    let possible = || branches.iter().filter(|branch| !is_other(branch, here));
    let mut likely = possible().filter(|branch| missing(branch, here).is_empty());
    let mut possible = possible();
    match (likely.next(), likely.next(), possible.next(), possible.next()) {
        (Some(branch), None, ..) | (None, _, Some(branch), None) => branch.first(),
        _ => None,
    }
}

/// Whether a value is not meant for a branch: it is of another type, or its tag is that of another
/// variant.
fn is_other(branch: &[ValidationError<'_>], here: &str) -> bool {
    branch.iter().any(|error| match error.kind() {
        Kind::Type { .. } => error.instance_path().as_str() == here,
        Kind::Constant { .. } | Kind::Enum { .. } => true,
        _ => false,
    })
}

/// The members that would tell which branch is meant, if they are what all possible ones lack.
fn by_members<'e>(error: &'e ValidationError<'_>, branches: &'e Branches) -> Option<Reason<'e>> {
    let here = error.instance_path().as_str();
    let possible: Vec<Vec<&str>> = branches
        .iter()
        .filter(|branch| !is_other(branch, here))
        .map(|branch| missing(branch, here))
        .collect();
    let (first, rest) = possible.split_first()?;
    if possible.iter().any(Vec::is_empty) {
        return None;
    }
    let shared: Vec<&str> =
        first.iter().copied().filter(|name| rest.iter().all(|more| more.contains(name))).collect();
    if !shared.is_empty() {
        return Some(Reason::at(error, lacks(&shared)));
    }
    let one_of = list(possible.iter().filter_map(|names| names.first()));
    let found = quoted(error.instance());
    Some(Reason::at(error, format!("must have one of {one_of}, but is {found}")))
}

/// The types and the names to choose from, if each branch refuses the value for one of these.
fn by_kind<'e>(error: &'e ValidationError<'_>, branches: &'e Branches) -> Option<Reason<'e>> {
    let here = error.instance_path().as_str();
    let (mut kinds, mut names) = (Vec::new(), Vec::new());
    // The tag of a variant, or the value itself.
    let mut place = None;
    for branch in branches {
        let decisive = branch.iter().find(|error| match error.kind() {
            Kind::Type { .. } => error.instance_path().as_str() == here,
            kind => matches!(kind, Kind::Constant { .. } | Kind::Enum { .. }),
        })?;
        match decisive.kind() {
            Kind::Type { kind } => kinds.extend(types(kind)),
            Kind::Constant { expected_value } => names.push(&**expected_value),
            Kind::Enum { options } => names.extend(options.as_array()?),
            _ => return None,
        }
        if !matches!(decisive.kind(), Kind::Type { .. }) {
            let path = decisive.instance_path().as_str();
            if place
                .is_some_and(|place: &ValidationError<'_>| place.instance_path().as_str() != path)
            {
                return None;
            }
            place = Some(decisive);
        }
    }
    kinds.sort();
    kinds.dedup();
    let found = quoted(place.unwrap_or(error).instance());
    let Some(place) = place else {
        return Some(Reason::at(error, format!("must be {}, not {found}", kinds.join(" or "))));
    };
    let mut choice = format!("one of {}", values(names.into_iter()));
    if place.instance_path().as_str() == here && !kinds.is_empty() {
        choice = format!("{choice}, or {}", kinds.join(" or "));
    }
    Some(Reason::at(place, format!("must be {choice}, not {found}")))
}

/// How many branches are quoted when none of them was clearly meant.
const MAX_QUOTED: usize = 5;

/// What each branch has against the value.
fn each<'e>(error: &'e ValidationError<'_>, branches: &Branches, schema: &Value) -> Reason<'e> {
    let here = error.instance_path().as_str();
    let reasons: Vec<String> = branches
        .iter()
        .filter_map(|branch| branch.first())
        .take(MAX_QUOTED)
        .map(|reason| {
            let path = reason.instance_path().as_str();
            let message = shortened(&message(reason, schema));
            match path.strip_prefix(here) {
                Some("") => message,
                inner => format!("`{}` {message}", inner.unwrap_or(path)),
            }
        })
        .collect();
    let message = format!("fits none of its {} forms: {}", branches.len(), reasons.join("; or "));
    Reason::at(error, message)
}
