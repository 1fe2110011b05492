//! Selects the branch of an `anyOf` or `oneOf` that a value is most likely meant for, and reports
//! why the value violates it.
//!
//! "Matches none of five alternatives" does not help. The type, the tag or the members of the value
//! usually identify the intended branch.

use super::{
    failure::{Failure, Rule},
    message::{lacks, message, types},
    quote::{list, quoted, shortened, values},
};

/// The location and the message to report for a failure.
pub(super) struct Reason<'e> {
    pub(super) path: &'e str,
    pub(super) message: String,
}

type Branches<'a> = [Vec<Failure<'a>>];

impl<'e> Reason<'e> {
    fn at(failure: &'e Failure<'_>, message: String) -> Self {
        Self { path: &failure.path, message }
    }

    /// Returns the reason of `failure`, or of its intended branch.
    pub(super) fn of(failure: &'e Failure<'_>) -> Self {
        let Rule::NoneFits(branches) = &failure.rule else {
            return Self::at(failure, message(failure));
        };
        match meant(branches, &failure.path) {
            Some(inner) => Self::of(inner),
            None => by_members(failure, branches)
                .or_else(|| by_kind(failure, branches))
                .unwrap_or_else(|| each(failure, branches)),
        }
    }
}

/// Returns the required members that the object at `here` lacks in one branch.
fn missing<'e>(branch: &'e [Failure<'_>], here: &str) -> Vec<&'e str> {
    let mut missing = Vec::new();
    for failure in branch.iter().filter(|failure| failure.path == here) {
        if let Rule::Required(names) = &failure.rule {
            let new = names.iter().filter(|name| !missing.contains(*name)).collect::<Vec<_>>();
            missing.extend(new);
        }
    }
    missing
}

/// Returns the first failure of the intended branch, if only one branch remains after the others
/// are excluded.
fn meant<'e, 'a>(branches: &'e Branches<'a>, here: &str) -> Option<&'e Failure<'a>> {
    let possible = || branches.iter().filter(|branch| !is_other(branch, here));
    let mut likely = possible().filter(|branch| missing(branch, here).is_empty());
    let mut possible = possible();
    match (likely.next(), likely.next(), possible.next(), possible.next()) {
        (Some(branch), None, ..) | (None, _, Some(branch), None) => branch.first(),
        _ => None,
    }
}

/// Returns whether a value is clearly not meant for a branch: it has another type, or the tag of
/// another variant.
fn is_other(branch: &[Failure<'_>], here: &str) -> bool {
    branch.iter().any(|failure| is_decisive(failure, here))
}

fn is_decisive(failure: &Failure<'_>, here: &str) -> bool {
    match failure.rule {
        Rule::Type(_) => failure.path == here,
        Rule::Const(_) | Rule::Enum(_) => true,
        _ => false,
    }
}

/// Returns a reason that names the members which would identify the branch, if every possible
/// branch lacks some.
fn by_members<'e>(failure: &'e Failure<'_>, branches: &'e Branches<'_>) -> Option<Reason<'e>> {
    let here = &failure.path;
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
        return Some(Reason::at(failure, lacks(&shared)));
    }
    let one_of = list(possible.iter().filter_map(|names| names.first()));
    let found = quoted(failure.value);
    Some(Reason::at(failure, format!("must have one of {one_of}, but is {found}")))
}

/// Returns a reason that lists the allowed types and values, if each branch fails because of one of
/// these.
fn by_kind<'e>(failure: &'e Failure<'_>, branches: &'e Branches<'_>) -> Option<Reason<'e>> {
    let here = &failure.path;
    let (mut kinds, mut names) = (Vec::new(), Vec::new());
    // The failure at the tag of a variant, or at the value itself.
    let mut place: Option<&Failure<'_>> = None;
    for branch in branches {
        let decisive = branch.iter().find(|failure| is_decisive(failure, here))?;
        match &decisive.rule {
            Rule::Type(named) => {
                kinds.extend(types(named));
                continue;
            }
            Rule::Const(expected) => names.push(*expected),
            Rule::Enum(options) => names.extend(options),
            _ => return None,
        }
        if place.is_some_and(|place| place.path != decisive.path) {
            return None;
        }
        place = Some(decisive);
    }
    kinds.sort();
    kinds.dedup();
    let found = quoted(place.unwrap_or(failure).value);
    let Some(place) = place else {
        return Some(Reason::at(failure, format!("must be {}, not {found}", kinds.join(" or "))));
    };
    let mut choice = format!("one of {}", values(names.into_iter()));
    if place.path == *here && !kinds.is_empty() {
        choice = format!("{choice}, or {}", kinds.join(" or "));
    }
    Some(Reason::at(place, format!("must be {choice}, not {found}")))
}

/// Maximum number of branches in a message.
const MAX_QUOTED: usize = 5;

/// Returns a reason that lists the first failure of each branch.
fn each<'e>(failure: &'e Failure<'_>, branches: &Branches<'_>) -> Reason<'e> {
    let reasons: Vec<String> = branches
        .iter()
        .filter_map(|branch| branch.first())
        .take(MAX_QUOTED)
        .map(|reason| {
            let message = shortened(&message(reason));
            match reason.path.strip_prefix(&failure.path) {
                Some("") => message,
                inner => format!("`{}` {message}", inner.unwrap_or(&reason.path)),
            }
        })
        .collect();
    let message =
        format!("matches none of its {} alternatives: {}", branches.len(), reasons.join("; or "));
    Reason::at(failure, message)
}
