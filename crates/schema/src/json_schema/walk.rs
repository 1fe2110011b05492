//! Checks a text against a [`Tree`] while parsing it. Builds no [`serde_json::Value`], and
//! allocates only for strings with escapes and for `pattern`.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::{
    compile::EXACT,
    number::Number,
    tree::{Checks, Items, Kind, Members, Node, NodeId, Range, Side, Text, Tree},
};

/// Maximum length of a chain of references. A document may contain a cycle; chains of four are
/// already unusual.
const MAX_HOPS: usize = 16;

/// Returns whether `text` is certainly valid. `false` means undecided, not invalid.
pub(super) fn fits(tree: &Tree, text: &str) -> bool {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let walk = Walk { tree, node: Tree::ROOT };
    walk.deserialize(&mut deserializer).is_ok() && deserializer.end().is_ok()
}

/// The position of the walk: the node that the next value must match.
#[derive(Clone, Copy)]
struct Walk<'t> {
    tree: &'t Tree,
    node: NodeId,
}

impl<'t> Walk<'t> {
    /// Returns the checks for a value of this kind; `None` if every value is valid.
    fn checks<E: Error>(self, kind: Kind) -> Result<Option<&'t Checks>, E> {
        let mut node = self.node;
        for _ in 0..MAX_HOPS {
            match self.tree.node(node) {
                Node::Anything => return Ok(None),
                Node::Doubt => return Err(doubt()),
                Node::Same(target) => node = *target,
                Node::ByKind(targets) => node = targets[kind as usize],
                Node::Checks(checks) if checks.kinds.has(kind) => return Ok(Some(checks)),
                Node::Checks(_) => return Err(doubt()),
            }
        }
        Err(doubt())
    }

    fn number<E: Error>(self, kind: Kind, value: Number) -> Result<(), E> {
        let Some(checks) = self.checks(kind)? else { return Ok(()) };
        let literal = checks.literals.as_ref().is_none_or(
            |literals| matches!(value, Number::Integer(value) if literals.integers.contains(&value)),
        );
        certain(literal && checks.number.as_ref().is_none_or(|range| in_range(range, value)))
    }

    fn at(self, node: NodeId) -> Self {
        Self { node, ..self }
    }
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        match self.tree.node(self.node) {
            Node::Anything => deserializer.deserialize_ignored_any(IgnoredAny).map(drop),
            Node::Doubt => Err(doubt()),
            Node::Same(_) | Node::ByKind(_) | Node::Checks(_) => deserializer.deserialize_any(self),
        }
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        let Some(checks) = self.checks(Kind::Null)? else { return Ok(()) };
        certain(checks.literals.as_ref().is_none_or(|literals| literals.null))
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        let Some(checks) = self.checks(Kind::Boolean)? else { return Ok(()) };
        let literals = checks.literals.as_ref();
        certain(literals.is_none_or(|literals| literals.booleans[usize::from(value)]))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        self.number(Kind::Integer, Number::Integer(value.into()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        self.number(Kind::Integer, Number::Integer(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        self.number(Kind::Fraction, Number::Fraction(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<(), E> {
        let Some(checks) = self.checks(Kind::String)? else { return Ok(()) };
        let literals = checks.literals.as_ref();
        let literal =
            literals.is_none_or(|literals| literals.strings.iter().any(|known| **known == *value));
        certain(literal && checks.string.as_ref().is_none_or(|text| is_text(text, value)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        match self.checks(Kind::Array)? {
            Some(Checks { literals: Some(_), .. }) => Err(doubt()),
            Some(Checks { array: Some(asked), .. }) => self.items(asked, items),
            _ => {
                while items.next_element::<IgnoredAny>()?.is_some() {}
                Ok(())
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        match self.checks(Kind::Object)? {
            Some(Checks { literals: Some(_), .. }) => Err(doubt()),
            Some(Checks { object: Some(asked), .. }) => self.members(asked, members),
            _ => {
                while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(())
            }
        }
    }
}

impl Walk<'_> {
    fn items<'de, A: SeqAccess<'de>>(self, asked: &Items, mut items: A) -> Result<(), A::Error> {
        let mut first = asked.first.iter();
        let mut count = 0_u64;
        loop {
            let node = first.next().copied().unwrap_or(asked.rest);
            if items.next_element_seed(self.at(node))?.is_none() {
                return certain(count >= asked.min);
            }
            count += 1;
            if count > asked.max || (asked.distinct && count > 1) {
                return Err(doubt());
            }
        }
    }

    fn members<'de, A: MapAccess<'de>>(
        self,
        asked: &Members,
        mut members: A,
    ) -> Result<(), A::Error> {
        let (mut count, mut seen) = (0_u64, 0_u64);
        // A name may occur twice. The last value counts, and checking every value covers it.
        while let Some((node, bit)) = members.next_key_seed(Name(asked))? {
            members.next_value_seed(self.at(node))?;
            seen |= bit;
            count += 1;
            if count > asked.max {
                return Err(doubt());
            }
        }
        certain(seen == asked.required && (count > 0 || !asked.at_least_one))
    }
}

/// Reads the name of a member. Returns its node and its bit in [`Members::required`].
struct Name<'t>(&'t Members);

impl<'de> DeserializeSeed<'de> for Name<'_> {
    type Value = (NodeId, u64);

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl Visitor<'_> for Name<'_> {
    type Value = (NodeId, u64);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a member")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
        let known = &self.0.known;
        Ok(match known.binary_search_by(|member| (*member.name).cmp(name)) {
            Ok(place) => (known[place].node, known[place].bit),
            Err(_) => (self.0.rest, 0),
        })
    }
}

fn in_range(range: &Range, value: Number) -> bool {
    let stepped = range.step.is_none_or(
        |step| matches!(value, Number::Integer(value) if value.abs() < EXACT && value % step == 0),
    );
    stepped && range.bounds.iter().all(|(side, bound)| on_side(*side, value, *bound))
}

fn on_side(side: Side, value: Number, bound: Number) -> bool {
    let order = value.compare(bound);
    match side {
        Side::AtLeast => order.is_ge(),
        Side::Above => order.is_gt(),
        Side::AtMost => order.is_le(),
        Side::Below => order.is_lt(),
    }
}

fn is_text(text: &Text, value: &str) -> bool {
    let length = value.chars().count() as u64;
    (text.min..=text.max).contains(&length)
        && text.pattern.as_ref().is_none_or(|pattern| pattern.matches(value))
}

fn certain<E: Error>(fits: bool) -> Result<(), E> {
    if fits { Ok(()) } else { Err(doubt()) }
}

/// Returns the error that stops the walk. Its message is never shown: a validator reports the
/// reason.
fn doubt<E: Error>() -> E {
    E::custom("doubt")
}
