//! Matches URIs against a template in bounded time, without backtracking.
//!
//! A template is compiled to steps that only move forward. A first pass, from the end, computes a
//! score for each step and position: whether the rest matches, and how many optional variables it
//! fills. A second pass, from the start, follows the best scores. It fills as many variables as
//! possible, and earlier variables are as long as possible. The time is bounded by the length of
//! the template times that of the URI.

use std::collections::VecDeque;

use super::{
    parse,
    part::{Operator, Part, Unit, Variable},
};

/// A compiled template.
#[derive(Debug)]
pub(super) struct Program {
    steps: Vec<Step>,
    /// Number of variables.
    slots: usize,
}

#[derive(Debug)]
enum Step {
    /// Exactly these characters.
    Text(Vec<Unit>),
    /// The value of a variable, at least one character long.
    Value(Value),
    /// `name=value` pairs for some variables, in any order, or nothing.
    Named(Named),
    /// The steps up to `end` may be skipped.
    Optional { end: usize },
}

#[derive(Debug)]
struct Value {
    slot: usize,
    /// Characters that end the value unless they are percent-encoded.
    stops: String,
    limit: Option<usize>,
}

#[derive(Debug)]
struct Named {
    first: char,
    separator: char,
    /// Characters that end the list.
    stops: &'static str,
    members: Vec<Member>,
}

#[derive(Debug)]
struct Member {
    name: Vec<Unit>,
    slot: usize,
    limit: Option<usize>,
    repeats: bool,
}

/// Number of optional variables that the rest of a URI can fill; `None` if it does not match.
type Score = Option<usize>;

impl Program {
    pub(super) fn compile(parts: &[Part], variables: &[String]) -> Self {
        let mut steps = Vec::new();
        let slot = |variable: &Variable| {
            let known = variables.iter().position(|name| *name == variable.name);
            known.expect("the variables come from the same parts")
        };
        for part in parts {
            match part {
                Part::Literal(units) => steps.push(Step::Text(units.clone())),
                Part::Expression { operator, variables } if operator.is_named() => {
                    named(*operator, variables, &slot, &mut steps);
                }
                Part::Expression { operator, variables } => {
                    unnamed(*operator, variables, &slot, &mut steps);
                }
            }
        }
        Self { steps, slots: variables.len() }
    }

    /// Returns the value of each variable; `None` if the URI does not match.
    pub(super) fn run(&self, uri: &str) -> Option<Vec<Option<String>>> {
        let uri = parse::uri(uri)?;
        // A fast rejection: most URIs that do not match differ at the start.
        if let Some(Step::Text(units)) = self.steps.first()
            && !uri.starts_with(units)
        {
            return None;
        }
        let scores = self.scores(&uri);
        scores[0][0]?;
        let mut found = Found { values: vec![None; self.slots], prefixes: vec![None; self.slots] };
        let (mut step, mut at) = (0, 0);
        while let Some(current) = self.steps.get(step) {
            let (best, next) = (scores[step][at], &scores[step + 1]);
            step += 1;
            match current {
                Step::Text(units) => at += units.len(),
                Step::Value(value) => {
                    let longest = at + value.reach(&uri[at..]);
                    let end = (at + 1..=longest).rev().find(|end| next[*end] == best)?;
                    found.keep(value.slot, value.limit.is_some(), decode(&uri[at..end]))?;
                    at = end;
                }
                Step::Named(named) if best != next[at] => {
                    let List { end, .. } = named.lists(&uri)[at]?;
                    named.read(&uri[at..end], &mut found)?;
                    at = end;
                }
                Step::Optional { end } if best == scores[*end][at] => step = *end,
                Step::Named(_) | Step::Optional { .. } => {}
            }
        }
        found.finish()
    }

    /// Returns the score of each step at each position of the URI.
    fn scores(&self, uri: &[Unit]) -> Vec<Vec<Score>> {
        let mut scores = vec![Vec::new(); self.steps.len() + 1];
        scores[self.steps.len()] = vec![None; uri.len() + 1];
        scores[self.steps.len()][uri.len()] = Some(0);
        for (place, step) in self.steps.iter().enumerate().rev() {
            let next = &scores[place + 1];
            scores[place] = match step {
                Step::Text(units) => (0..=uri.len())
                    .map(|at| {
                        next.get(at + units.len())
                            .copied()?
                            .filter(|_| uri[at..].starts_with(units))
                    })
                    .collect(),
                Step::Value(value) => value.scores(uri, next),
                Step::Named(named) => {
                    let lists = named.lists(uri).into_iter();
                    let filled = lists.map(|list| Some(next[list?.end]? + list?.pairs));
                    filled.zip(next).map(|(filled, left_out)| filled.max(*left_out)).collect()
                }
                Step::Optional { end } => {
                    let filled = next.iter().map(|score| Some((*score)? + 1));
                    filled
                        .zip(&scores[*end])
                        .map(|(filled, left_out)| filled.max(*left_out))
                        .collect()
                }
            };
        }
        scores
    }
}

impl Value {
    fn takes(&self, unit: Unit) -> bool {
        unit.encoded || !self.stops.contains(unit.character)
    }

    /// Returns how many of `units` can be part of the value.
    fn reach(&self, units: &[Unit]) -> usize {
        let most = self.limit.unwrap_or(units.len());
        units.iter().take(most).take_while(|unit| self.takes(**unit)).count()
    }

    /// Returns, for each position, the best score of any possible end of the value.
    ///
    /// Moves backward with a window of possible ends. An end is dropped if a nearer end has at
    /// least the same score. Scores then rise toward the far end, so the best end is the last one.
    fn scores(&self, uri: &[Unit], next: &[Score]) -> Vec<Score> {
        let mut scores = vec![None; uri.len() + 1];
        let mut ends: VecDeque<usize> = VecDeque::new();
        let mut run_end = uri.len();
        for at in (0..uri.len()).rev() {
            while ends.front().is_some_and(|end| next[*end] <= next[at + 1]) {
                ends.pop_front();
            }
            ends.push_front(at + 1);
            if !self.takes(uri[at]) {
                run_end = at;
            }
            let most = self.limit.map_or(run_end, |limit| run_end.min(at + limit));
            while ends.back().is_some_and(|end| *end > most) {
                ends.pop_back();
            }
            scores[at] = ends.back().and_then(|end| next[*end]);
        }
        scores
    }
}

impl Named {
    /// Returns the list that starts at each position, if any.
    ///
    /// Moves backward, pair by pair: a list is valid if its first pair and the list after it are
    /// valid.
    fn lists(&self, uri: &[Unit]) -> Vec<Option<List>> {
        let mut lists = vec![None; uri.len() + 1];
        let mut rest = Rest::before(uri.len());
        for at in (0..uri.len()).rev() {
            let Unit { character, encoded: false } = uri[at] else { continue };
            if character == self.first || character == self.separator {
                let pair = self.member(&uri[at + 1..rest.pair_end]);
                let fresh = pair
                    .filter(|member| self.members[*member].repeats || !rest.seen.contains(member));
                if character == self.first && rest.good && fresh.is_some() {
                    lists[at] = Some(List { end: rest.end, pairs: rest.pairs + 1 });
                }
                if character == self.separator {
                    rest.good &= fresh.is_some();
                    rest.pair_end = at;
                    rest.pairs += 1;
                    rest.seen.extend(fresh.filter(|member| !rest.seen.contains(member)));
                }
            }
            if self.stops.contains(character) {
                rest = Rest::before(at);
            }
        }
        lists
    }

    /// Returns the member that a pair assigns.
    fn member(&self, pair: &[Unit]) -> Option<usize> {
        self.members.iter().position(|member| match pair.strip_prefix(&member.name[..]) {
            Some([]) => true,
            Some([equals, value @ ..]) => {
                *equals == Unit::plain('=') && member.limit.is_none_or(|limit| value.len() <= limit)
            }
            None => false,
        })
    }

    /// Reads the values of a list.
    fn read(&self, list: &[Unit], found: &mut Found) -> Option<()> {
        let separator = Unit::plain(self.separator);
        let mut values: Vec<Option<String>> = vec![None; self.members.len()];
        for pair in list[1..].split(|unit| *unit == separator) {
            let place = self.member(pair)?;
            let value = decode(pair.get(self.members[place].name.len() + 1..).unwrap_or_default());
            values[place] = match values[place].take() {
                Some(earlier) => Some(format!("{earlier},{value}")),
                None => Some(value),
            };
        }
        for (member, value) in self.members.iter().zip(values) {
            if let Some(value) = value {
                found.keep(member.slot, member.limit.is_some(), value)?;
            }
        }
        Some(())
    }
}

/// A list of `name=value` pairs in a URI.
#[derive(Clone, Copy)]
struct List {
    end: usize,
    pairs: usize,
}

/// The state of [`Named::lists`] for the URI after the current position.
struct Rest {
    end: usize,
    pair_end: usize,
    pairs: usize,
    /// Members that have a pair.
    seen: Vec<usize>,
    good: bool,
}

impl Rest {
    /// Returns the state at the end of a list.
    fn before(end: usize) -> Self {
        Self { end, pair_end: end, pairs: 0, seen: Vec::new(), good: true }
    }
}

/// The values found so far.
struct Found {
    values: Vec<Option<String>>,
    /// Longest prefix of each variable that a `{x:3}` expression matched.
    prefixes: Vec<Option<String>>,
}

impl Found {
    /// Stores a value. Returns `None` if the variable has another value.
    fn keep(&mut self, slot: usize, is_prefix: bool, value: String) -> Option<()> {
        if is_prefix {
            let longest = self.prefixes[slot].get_or_insert_default();
            if value.starts_with(longest.as_str()) {
                *longest = value;
                return Some(());
            }
            return longest.starts_with(&value).then_some(());
        }
        match &self.values[slot] {
            Some(known) => (*known == value).then_some(()),
            None => {
                self.values[slot] = Some(value);
                Some(())
            }
        }
    }

    /// Returns all values, if every prefix matches its variable.
    fn finish(self) -> Option<Vec<Option<String>>> {
        let pairs = self.values.into_iter().zip(self.prefixes);
        pairs
            .map(|pair| match pair {
                (Some(value), Some(prefix)) if !value.starts_with(&prefix) => None,
                (value, prefix) => Some(value.or(prefix)),
            })
            .collect()
    }
}

fn named(
    operator: Operator,
    variables: &[Variable],
    slot: &impl Fn(&Variable) -> usize,
    steps: &mut Vec<Step>,
) {
    let members = variables.iter().map(|variable| Member {
        name: parse::uri(&variable.name).unwrap_or_default(),
        slot: slot(variable),
        limit: variable.limit,
        repeats: variable.explode,
    });
    // `{?a}{&b}` is merged to one list, so that `?b=1` matches too.
    if operator == Operator::Continuation
        && let Some(Step::Named(list)) = steps.last_mut()
        && list.separator == '&'
    {
        list.members.extend(members);
        return;
    }
    steps.push(Step::Named(Named {
        first: operator.first().unwrap_or(operator.separator()),
        separator: operator.separator(),
        stops: if operator == Operator::Parameter { "/?#" } else { "#" },
        members: members.collect(),
    }));
}

fn unnamed(
    operator: Operator,
    variables: &[Variable],
    slot: &impl Fn(&Variable) -> usize,
    steps: &mut Vec<Step>,
) {
    let mut open = Vec::new();
    for (place, variable) in variables.iter().enumerate() {
        let before = if place == 0 { operator.first() } else { Some(operator.separator()) };
        if let Some(character) = before {
            // A variable without a value omits its separator and the rest of the list.
            open.push(steps.len());
            steps.push(Step::Optional { end: 0 });
            steps.push(Step::Text(vec![Unit::plain(character)]));
        }
        steps.push(Step::Value(Value {
            slot: slot(variable),
            stops: stops(operator, variables.len() > 1, variable.explode),
            limit: variable.limit,
        }));
    }
    let end = steps.len();
    for place in open {
        steps[place] = Step::Optional { end };
    }
}

/// Returns the characters that end a value.
fn stops(operator: Operator, has_siblings: bool, explode: bool) -> String {
    let mut stops = if operator.keeps_reserved() { String::new() } else { "/?#".to_owned() };
    let separator = operator.separator();
    if explode {
        stops.retain(|character| character != separator);
    } else if has_siblings {
        stops.push(separator);
    }
    stops
}

fn decode(units: &[Unit]) -> String {
    units.iter().map(|unit| unit.character).collect()
}
