//! Compiles a schema document to a [`Tree`].
//!
//! Covers the schemas that `schemars` writes for ordinary types, and most hand-written schemas. A
//! schema with a keyword that is in neither of the two lists becomes a [`Node::Doubt`]. An unknown
//! keyword can therefore slow a check down but never weaken it.

use std::{collections::HashMap, ptr};

use serde_json::{Map, Value};

use super::{
    dialect::Dialect,
    full::Pattern,
    number::Number,
    subschemas::Survey,
    supported::resolve,
    tree::{
        Checks, Items, Kind, Kinds, Literals, Member, Members, Node, NodeId, Range, Side, Text,
        Tree,
    },
};

/// Keywords that constrain nothing. `format` is one of them by default in 2020-12.
const ANNOTATIONS: [&str; 12] = [
    "$comment",
    "$defs",
    "$schema",
    "default",
    "definitions",
    "deprecated",
    "description",
    "examples",
    "format",
    "readOnly",
    "title",
    "writeOnly",
];

/// Keywords that [`Checks`] covers.
const CHECKED: [&str; 21] = [
    "additionalProperties",
    "const",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "pattern",
    "prefixItems",
    "properties",
    "required",
    "type",
    "uniqueItems",
];

/// Below this, every integer has an exact `f64`, so mixed comparisons are exact.
pub(super) const EXACT: i128 = 1 << 53;

/// Maximum number of schemas that [`Compiler::kinds_of`] visits before it returns every kind.
/// References may fan out; real alternatives need about ten.
const KIND_BUDGET: usize = 256;

/// Compiles a valid document that was surveyed.
pub(super) fn compile(document: &Value, survey: Survey) -> Tree {
    // Other dialects interpret these keywords differently, and an `$id` changes the base of
    // references.
    if survey.dialect != Dialect::V2020_12 || !survey.one_base {
        return Tree { nodes: vec![Node::Doubt] };
    }
    let mut compiler = Compiler {
        document,
        nodes: vec![Node::Doubt, Node::Anything, Node::Checks(Box::new(Checks::of(Kinds::NONE)))],
        ids: HashMap::from([(ptr::from_ref(document), Tree::ROOT)]),
        open: vec![(Tree::ROOT, document)],
    };
    // A work list instead of recursion: a chain of references may be as long as the document.
    while let Some((id, schema)) = compiler.open.pop() {
        compiler.nodes[id.0] = compiler.read(schema).unwrap_or(Node::Doubt);
    }
    Tree { nodes: compiler.nodes }
}

const ANYTHING: NodeId = NodeId(1);
const NOTHING: NodeId = NodeId(2);

struct Compiler<'a> {
    document: &'a Value,
    nodes: Vec<Node>,
    /// Node of each schema, by the address of the schema in the document.
    ids: HashMap<*const Value, NodeId>,
    /// Nodes that are allocated but not compiled yet.
    open: Vec<(NodeId, &'a Value)>,
}

impl<'a> Compiler<'a> {
    /// Returns the node of a schema. A new schema is compiled later.
    fn id_of(&mut self, schema: &'a Value) -> NodeId {
        match schema {
            Value::Bool(true) => return ANYTHING,
            Value::Bool(false) => return NOTHING,
            _ => {}
        }
        let next = NodeId(self.nodes.len());
        let id = *self.ids.entry(ptr::from_ref(schema)).or_insert(next);
        if id == next {
            self.nodes.push(Node::Doubt);
            self.open.push((id, schema));
        }
        id
    }

    fn add(&mut self, checks: Checks) -> NodeId {
        self.nodes.push(Node::Checks(Box::new(checks)));
        NodeId(self.nodes.len() - 1)
    }

    /// Compiles one schema. `None` means [`Node::Doubt`].
    fn read(&mut self, schema: &'a Value) -> Option<Node> {
        let map = match schema {
            Value::Bool(true) => return Some(Node::Anything),
            Value::Bool(false) => return Some(Node::Checks(Box::new(Checks::of(Kinds::NONE)))),
            schema => schema.as_object()?,
        };
        let asserting: Vec<&str> = asserting(map).collect();
        match asserting[..] {
            [] => Some(Node::Anything),
            ["$ref"] => {
                let target = self.resolve(map.get("$ref")?)?;
                Some(Node::Same(self.id_of(target)))
            }
            [one] | [one, "type"] | ["type", one] if matches!(one, "anyOf" | "oneOf") => {
                self.alternatives(map.get(one)?.as_array()?, kinds(map)?)
            }
            _ if asserting.iter().all(|keyword| CHECKED.contains(keyword)) => {
                Some(Node::Checks(Box::new(self.checks(map)?)))
            }
            _ => None,
        }
    }

    fn checks(&mut self, map: &'a Map<String, Value>) -> Option<Checks> {
        let has = |keywords: &[&str]| keywords.iter().any(|keyword| map.contains_key(*keyword));
        let mut checks = Checks::of(kinds(map)?);
        if has(&["const", "enum"]) {
            checks.literals = Some(literals(map)?);
        }
        if has(&["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]) {
            checks.number = Some(range(map)?);
        }
        if has(&["minLength", "maxLength", "pattern"]) {
            checks.string = Some(text(map)?);
        }
        if has(&["prefixItems", "items", "minItems", "maxItems", "uniqueItems"]) {
            checks.array = Some(self.items(map)?);
        }
        let object = ["properties", "required", "additionalProperties"];
        if has(&object) || has(&["minProperties", "maxProperties"]) {
            checks.object = Some(self.members(map)?);
        }
        Some(checks)
    }

    fn items(&mut self, map: &'a Map<String, Value>) -> Option<Items> {
        let first = match map.get("prefixItems") {
            None => Vec::new(),
            Some(list) => list.as_array()?.iter().map(|item| self.id_of(item)).collect(),
        };
        Some(Items {
            first,
            rest: map.get("items").map_or(ANYTHING, |rest| self.id_of(rest)),
            min: count(map, "minItems", 0)?,
            max: count(map, "maxItems", u64::MAX)?,
            distinct: map.get("uniqueItems").map_or(Some(false), Value::as_bool)?,
        })
    }

    fn members(&mut self, map: &'a Map<String, Value>) -> Option<Members> {
        let rest = map.get("additionalProperties").map_or(ANYTHING, |rest| self.id_of(rest));
        let mut known = Vec::new();
        if let Some(properties) = map.get("properties") {
            for (name, schema) in properties.as_object()? {
                known.push(Member { name: name.as_str().into(), node: self.id_of(schema), bit: 0 });
            }
        }
        known.sort_by(|one, other| one.name.cmp(&other.name));
        let mut required = 0;
        if let Some(names) = map.get("required") {
            for name in names.as_array()? {
                let name = name.as_str()?;
                let place = match known.binary_search_by(|member| (*member.name).cmp(name)) {
                    Ok(place) => place,
                    Err(place) => {
                        known.insert(place, Member { name: name.into(), node: rest, bit: 0 });
                        place
                    }
                };
                if known[place].bit == 0 {
                    // Above 64 required members no bit is left: a doubt.
                    known[place].bit = 1_u64.checked_shl(u64::count_ones(required))?;
                    required |= known[place].bit;
                }
            }
        }
        let min = count(map, "minProperties", 0)?;
        (min <= 1).then_some(Members {
            known,
            rest,
            required,
            at_least_one: min == 1,
            max: count(map, "maxProperties", u64::MAX)?,
        })
    }

    /// Compiles an `anyOf` or `oneOf` whose branches exclude each other, so that the kind of a
    /// value selects its branch.
    ///
    /// Branches of string constants, and branches of objects with exactly one named member, are the
    /// variants of an enum. Each of the two groups counts as one branch.
    fn alternatives(&mut self, branches: &'a [Value], kinds: Kinds) -> Option<Node> {
        let mut named = Literals::default();
        let mut tagged: Vec<Member> = Vec::new();
        let mut apart = Vec::new();
        for branch in branches {
            if let Some(strings) = plain_strings(branch) {
                for string in strings {
                    let string = string.as_str()?.into();
                    if named.strings.contains(&string) {
                        return None;
                    }
                    named.strings.push(string);
                }
            } else if let Some((name, schema)) = only_member(branch) {
                if tagged.iter().any(|member| *member.name == **name) {
                    return None;
                }
                let node = self.id_of(schema);
                tagged.push(Member { name: name.as_str().into(), node, bit: 0 });
            } else {
                let kinds = self.kinds_of(branch, &mut { KIND_BUDGET });
                apart.push((kinds, self.id_of(branch)));
            }
        }
        if !named.strings.is_empty() {
            let kinds = Kinds::of(Kind::String);
            apart.push((kinds, self.add(Checks { literals: Some(named), ..Checks::of(kinds) })));
        }
        if !tagged.is_empty() {
            let kinds = Kinds::of(Kind::Object);
            let object = Some(one_of_members(tagged));
            apart.push((kinds, self.add(Checks { object, ..Checks::of(kinds) })));
        }
        by_kind(&apart, kinds)
    }

    /// Returns the kinds of values that a schema may accept. May return too many kinds, never too
    /// few.
    fn kinds_of(&self, schema: &'a Value, budget: &mut usize) -> Kinds {
        *budget = budget.saturating_sub(1);
        if *budget == 0 || *schema == Value::Bool(true) {
            return Kinds::EVERY;
        }
        let Some(map) = schema.as_object() else { return Kinds::NONE };
        if map.contains_key("type") {
            return kinds(map).unwrap_or(Kinds::EVERY);
        }
        if let Some(constant) = map.get("const") {
            return kinds_of_value(constant);
        }
        if let Some(values) = map.get("enum").and_then(Value::as_array) {
            return values.iter().map(kinds_of_value).fold(Kinds::NONE, Kinds::and);
        }
        if let Some(target) = map.get("$ref").and_then(|target| self.resolve(target)) {
            return self.kinds_of(target, budget);
        }
        let branches = map.get("oneOf").or_else(|| map.get("anyOf")).and_then(Value::as_array);
        branches.map_or(Kinds::EVERY, |branches| {
            branches
                .iter()
                .map(|branch| self.kinds_of(branch, budget))
                .fold(Kinds::NONE, Kinds::and)
        })
    }

    /// Returns the target of a `$ref` that is a plain JSON pointer.
    fn resolve(&self, target: &Value) -> Option<&'a Value> {
        resolve(self.document, target.as_str()?)
    }
}

/// Returns the keywords of a schema that can reject a value.
fn asserting(map: &Map<String, Value>) -> impl Iterator<Item = &str> {
    map.keys()
        .map(String::as_str)
        .filter(|keyword| !ANNOTATIONS.contains(keyword) && !keyword.starts_with("x-"))
}

/// Assigns alternatives to kinds. Returns `None` if two alternatives share a kind.
fn by_kind(apart: &[(Kinds, NodeId)], within: Kinds) -> Option<Node> {
    let mut nodes = [NOTHING; Kind::COUNT];
    let mut taken = Kinds::NONE;
    for (kinds, node) in apart {
        if taken.overlaps(*kinds) {
            return None;
        }
        taken = taken.and(*kinds);
        for kind in Kind::ALL.into_iter().filter(|kind| kinds.has(*kind) && within.has(*kind)) {
            nodes[kind as usize] = *node;
        }
    }
    Some(Node::ByKind(nodes))
}

/// Returns checks for an object with exactly one member, which is one of `known`.
fn one_of_members(mut known: Vec<Member>) -> Members {
    known.sort_by(|one, other| one.name.cmp(&other.name));
    Members { known, rest: NOTHING, required: 0, at_least_one: true, max: 1 }
}

/// Returns the strings of a branch that only lists strings.
fn plain_strings(branch: &Value) -> Option<&[Value]> {
    let map = branch.as_object()?;
    let mut keywords = asserting(map).filter(|keyword| *keyword != "type");
    let values = match (keywords.next(), keywords.next()) {
        (Some("const"), None) => std::slice::from_ref(map.get("const")?),
        (Some("enum"), None) => map.get("enum")?.as_array()?,
        _ => return None,
    };
    let typed = map.get("type").is_none_or(|kind| kind == "string");
    (typed && values.iter().all(Value::is_string)).then_some(values)
}

/// Returns the member of a branch that is an object with exactly one member.
fn only_member(branch: &Value) -> Option<(&String, &Value)> {
    let map = branch.as_object()?;
    let keywords: Vec<&str> = asserting(map).collect();
    let members = map.get("properties")?.as_object()?;
    let mut names = members.iter();
    let (name, schema) = names.next()?;
    let alone = names.next().is_none()
        && keywords.len() == 4
        && map.get("type")? == "object"
        && map.get("additionalProperties")? == false
        && *map.get("required")?.as_array()? == [Value::from(name.as_str())];
    alone.then_some((name, schema))
}

/// Returns the kinds that `type` lists; every kind without `type`.
fn kinds(map: &Map<String, Value>) -> Option<Kinds> {
    match map.get("type") {
        None => Some(Kinds::EVERY),
        Some(Value::Array(names)) => {
            names.iter().try_fold(Kinds::NONE, |kinds, name| Some(kinds.and(named_kinds(name)?)))
        }
        Some(name) => named_kinds(name),
    }
}

fn named_kinds(name: &Value) -> Option<Kinds> {
    Some(match name.as_str()? {
        "null" => Kinds::of(Kind::Null),
        "boolean" => Kinds::of(Kind::Boolean),
        "integer" => Kinds::of(Kind::Integer),
        "number" => Kinds::of(Kind::Integer).and(Kinds::of(Kind::Fraction)),
        "string" => Kinds::of(Kind::String),
        "array" => Kinds::of(Kind::Array),
        "object" => Kinds::of(Kind::Object),
        _ => return None,
    })
}

fn kinds_of_value(value: &Value) -> Kinds {
    Kinds::of(match value {
        Value::Null => Kind::Null,
        Value::Bool(_) => Kind::Boolean,
        // `1` and `1.0` are equal, so a number constant matches both kinds.
        Value::Number(_) => return Kinds::of(Kind::Integer).and(Kinds::of(Kind::Fraction)),
        Value::String(_) => Kind::String,
        Value::Array(_) => Kind::Array,
        Value::Object(_) => Kind::Object,
    })
}

/// Returns the values of `const` or `enum`. Omits values that are expensive to compare: they become
/// a doubt.
fn literals(map: &Map<String, Value>) -> Option<Literals> {
    let values = match (map.get("const"), map.get("enum")) {
        (Some(value), None) => std::slice::from_ref(value),
        (None, Some(values)) => values.as_array()?,
        _ => return None,
    };
    let mut literals = Literals::default();
    for value in values {
        match value {
            Value::Null => literals.null = true,
            Value::Bool(value) => literals.booleans[usize::from(*value)] = true,
            Value::String(value) => literals.strings.push(value.as_str().into()),
            Value::Number(value) => {
                literals.integers.extend(value.as_i64().map(i128::from));
            }
            Value::Array(_) | Value::Object(_) => {}
        }
    }
    Some(literals)
}

fn range(map: &Map<String, Value>) -> Option<Range> {
    let mut bounds = Vec::new();
    for (keyword, side) in [
        ("minimum", Side::AtLeast),
        ("exclusiveMinimum", Side::Above),
        ("maximum", Side::AtMost),
        ("exclusiveMaximum", Side::Below),
    ] {
        if let Some(bound) = map.get(keyword) {
            bounds.push((side, Number::of(bound.as_number()?)?));
        }
    }
    let step = match map.get("multipleOf") {
        None => None,
        Some(step) => match Number::of(step.as_number()?)? {
            Number::Integer(step) if (1..EXACT).contains(&step) => Some(step),
            _ => return None,
        },
    };
    Some(Range { bounds, step })
}

fn text(map: &Map<String, Value>) -> Option<Text> {
    let pattern = match map.get("pattern") {
        None => None,
        Some(pattern) => Some(Pattern::new(pattern)?),
    };
    let (min, max) = (count(map, "minLength", 0)?, count(map, "maxLength", u64::MAX)?);
    Some(Text { min, max, pattern })
}

/// Returns the value of a counting keyword, or `default` without it.
fn count(map: &Map<String, Value>, keyword: &str, default: u64) -> Option<u64> {
    map.get(keyword).map_or(Some(default), Value::as_u64)
}
