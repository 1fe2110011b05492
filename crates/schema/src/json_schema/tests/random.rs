//! A seeded generator of values that mostly match a schema, and of schemas.

use serde_json::{Map, Value, json};

/// xorshift64*: deterministic on every machine, and without a dependency.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11
    }

    pub(super) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    pub(super) fn percent(&mut self, chance: usize) -> bool {
        self.below(100) < chance
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    fn word(&mut self) -> &'static str {
        const WORDS: [&str; 11] =
            ["", "a", "aa", "ab", "name", "é☃", "x", "\"\\\n", "aaaa", "7", "Fast"];
        WORDS[self.below(WORDS.len())]
    }

    fn number(&mut self) -> Value {
        self.pick(&[
            json!(0),
            json!(1),
            json!(-1),
            json!(2),
            json!(3),
            json!(7),
            json!(1.0),
            json!(0.5),
            json!(2.5),
            json!(127),
            json!(256),
            json!(-129),
            json!(1e30),
            json!(u64::MAX),
            json!(i64::MIN),
            json!(9_007_199_254_740_993_i64),
            json!(9_007_199_254_740_992.0),
        ])
        .clone()
    }

    /// Returns any small value.
    fn value(&mut self, depth: usize) -> Value {
        match self.below(if depth == 0 { 5 } else { 7 }) {
            0 => Value::Null,
            1 => self.percent(50).into(),
            2 | 3 => self.number(),
            4 => self.word().into(),
            5 => (0..self.below(4)).map(|_| self.value(depth - 1)).collect(),
            _ => {
                let names = (0..self.below(4)).map(|_| self.word().to_owned()).collect::<Vec<_>>();
                names.into_iter().map(|name| (name, self.value(depth - 1))).collect()
            }
        }
    }

    /// Returns a value that mostly matches a schema.
    pub(super) fn fitting(&mut self, schema: &Value, root: &Value, depth: usize) -> Value {
        let Some(map) = schema.as_object() else { return self.value(1) };
        if let Some(target) = map.get("$ref").and_then(Value::as_str) {
            return match root.pointer(&target[1..]) {
                Some(target) if depth > 0 => self.fitting(target, root, depth - 1),
                _ => Value::Null,
            };
        }
        if let Some(branches) = map.get("oneOf").or_else(|| map.get("anyOf")) {
            let branch = match branches.as_array() {
                // The last branch of an `Option` is `null`, which ends the recursion.
                Some(branches) if depth == 0 => branches.last(),
                Some(branches) => Some(self.pick(branches)),
                None => None,
            };
            return branch.map_or(Value::Null, |branch| self.fitting(branch, root, depth));
        }
        if let Some(value) = map.get("const") {
            return value.clone();
        }
        if let Some(values) = map.get("enum").and_then(Value::as_array) {
            return self.pick(values).clone();
        }
        let kind = match map.get("type") {
            Some(Value::Array(kinds)) => self.pick(kinds).as_str().unwrap_or_default(),
            Some(kind) => kind.as_str().unwrap_or_default(),
            None => return self.value(1),
        };
        match kind {
            "null" => Value::Null,
            "boolean" => self.percent(50).into(),
            "integer" | "number" => self.fitting_number(map, kind),
            "string" => self.fitting_string(map),
            "array" => self.fitting_array(map, root, depth),
            _ => self.fitting_object(map, root, depth),
        }
    }

    fn fitting_number(&mut self, map: &Map<String, Value>, kind: &str) -> Value {
        if self.percent(10) {
            return self.number();
        }
        let bound = |keyword| map.get(keyword).and_then(Value::as_f64);
        let low = bound("minimum").or(bound("exclusiveMinimum")).unwrap_or(-5.0);
        let high = bound("maximum").or(bound("exclusiveMaximum")).unwrap_or(low + 20.0);
        let spread = (high - low).clamp(0.0, 200.0) as usize + 1;
        let value = low + self.below(spread) as f64;
        if kind == "number" && self.percent(50) { value.into() } else { (value as i64).into() }
    }

    fn fitting_string(&mut self, map: &Map<String, Value>) -> Value {
        if map.contains_key("pattern") && self.percent(90) {
            return (*self.pick(&["a", "aa", "aaa"])).into();
        }
        let count = |keyword| map.get(keyword).and_then(Value::as_u64).map(|n| n as usize);
        let (min, max) = (count("minLength").unwrap_or(0), count("maxLength").unwrap_or(8));
        if self.percent(5) {
            return self.word().into();
        }
        let length = min + self.below(max.saturating_sub(min) + 1);
        (0..length).map(|_| *self.pick(&['a', 'b', 'é', '☃', '"'])).collect::<String>().into()
    }

    fn fitting_array(&mut self, map: &Map<String, Value>, root: &Value, depth: usize) -> Value {
        if let Some(first) = map.get("prefixItems").and_then(Value::as_array) {
            return first.iter().map(|item| self.fitting(item, root, depth)).collect();
        }
        let count = |keyword| map.get(keyword).and_then(Value::as_u64).map(|n| n as usize);
        let min = count("minItems").unwrap_or(0);
        let max = count("maxItems").unwrap_or(min + 3);
        let length = if depth == 0 { min } else { min + self.below(max.saturating_sub(min) + 1) };
        let items = map.get("items").unwrap_or(&Value::Null);
        (0..length).map(|_| self.fitting(items, root, depth.saturating_sub(1))).collect()
    }

    fn fitting_object(&mut self, map: &Map<String, Value>, root: &Value, depth: usize) -> Value {
        let mut object = Map::new();
        let required = map.get("required").and_then(Value::as_array);
        for (name, schema) in map.get("properties").and_then(Value::as_object).into_iter().flatten()
        {
            let is_required = required.is_some_and(|all| all.iter().any(|known| known == name));
            if self.percent(if is_required { 99 } else { 60 }) {
                object.insert(name.clone(), self.fitting(schema, root, depth));
            }
        }
        if let Some(rest @ Value::Object(_)) = map.get("additionalProperties") {
            for _ in 0..self.below(3) {
                let value = self.fitting(rest, root, depth.saturating_sub(1));
                object.insert(self.word().to_owned(), value);
            }
        }
        object.into()
    }

    /// Corrupts one part of a value.
    pub(super) fn spoil(&mut self, value: &mut Value) {
        let inner = match value {
            Value::Array(items) if !items.is_empty() => {
                let place = self.below(items.len());
                items.get_mut(place)
            }
            Value::Object(members) if !members.is_empty() => {
                let place = self.below(members.len());
                members.values_mut().nth(place)
            }
            _ => None,
        };
        if let Some(inner) = inner
            && self.percent(75)
        {
            return self.spoil(inner);
        }
        *value = match (value.take(), self.below(5)) {
            // Serde accepts these and schemas do not: an array for a struct, an object for a
            // variant.
            (Value::Object(members), 0) => members.into_iter().map(|(_, value)| value).collect(),
            (Value::String(name), 0) => json!({ name: null }),
            (Value::Object(mut members), 1 | 2) => {
                let name = members.keys().nth(self.below(members.len().max(1))).cloned();
                members.remove(&name.unwrap_or_default());
                members.into()
            }
            (Value::Object(mut members), 3) => {
                members.insert(self.word().to_owned(), self.value(1));
                members.into()
            }
            (Value::Array(mut items), 1 | 2) => {
                let twin = items.first().cloned().unwrap_or_default();
                items.push(twin);
                items.into()
            }
            (Value::Number(_), 1..4) => self.number(),
            (Value::String(_), 1..4) => self.word().into(),
            _ => self.value(2),
        };
    }

    /// Serializes a value with random whitespace, escapes and duplicate members.
    pub(super) fn write(&mut self, value: &Value, text: &mut String) {
        if self.percent(3) {
            text.push(' ');
        }
        match value {
            Value::Array(items) => {
                text.push('[');
                for (place, item) in items.iter().enumerate() {
                    text.push_str(if place == 0 { "" } else { "," });
                    self.write(item, text);
                }
                text.push(']');
            }
            Value::Object(members) => {
                let mut members: Vec<(String, Value)> = members.clone().into_iter().collect();
                if !members.is_empty() && self.percent(4) {
                    let name = self.pick(&members).0.clone();
                    let place = self.below(members.len() + 1);
                    members.insert(place, (name, self.value(1)));
                }
                text.push('{');
                for (place, (name, value)) in members.iter().enumerate() {
                    text.push_str(if place == 0 { "" } else { "," });
                    self.write(&name.as_str().into(), text);
                    text.push(':');
                    self.write(value, text);
                }
                text.push('}');
            }
            Value::String(string) if string.starts_with('a') && self.percent(10) => {
                text.push_str("\"\\u0061");
                text.push_str(&json!(string[1..]).to_string()[1..]);
            }
            scalar => text.push_str(&scalar.to_string()),
        }
    }

    /// Returns any schema, mostly with keywords that the tree covers.
    pub(super) fn schema(&mut self, depth: usize) -> Value {
        if self.percent(6) {
            return self.percent(70).into();
        }
        if depth == 0 || self.percent(12) {
            return json!({ "$ref": format!("#/$defs/{}", self.pick(&["a", "b", "c"])) });
        }
        let mut map = Map::new();
        for _ in 0..self.below(4) + 1 {
            let (keyword, value) = self.keyword(depth - 1);
            map.insert(keyword.to_owned(), value);
        }
        map.into()
    }

    fn keyword(&mut self, depth: usize) -> (&'static str, Value) {
        let count = self.below(3);
        match self.below(26) {
            0..5 => ("type", self.kind().into()),
            5 => ("type", {
                let (one, other) = (self.kind(), self.kind());
                if one == other { json!([one]) } else { json!([one, other]) }
            }),
            6 => ("enum", self.distinct_values()),
            7 => ("const", self.value(1)),
            8 => ("minimum", self.number()),
            9 => ("exclusiveMaximum", self.number()),
            10 => ("multipleOf", self.pick(&[json!(2), json!(0.5), json!(3.0)]).clone()),
            11 => ("minLength", count.into()),
            12 => ("maxLength", count.into()),
            13 => ("pattern", (*self.pick(&["^a+$", "b", "^.$"])).into()),
            14 => ("items", self.schema(depth)),
            15 => ("prefixItems", json!([self.schema(depth), self.schema(depth)])),
            16 => ("minItems", count.into()),
            17 => ("uniqueItems", self.percent(70).into()),
            18 | 19 => ("properties", json!({ "a": self.schema(depth), "x": self.schema(depth) })),
            20 => ("required", json!([self.pick(&["a", "x", "name"])])),
            21 => ("additionalProperties", self.schema(depth)),
            22 => ("minProperties", count.into()),
            23 => ("anyOf", json!([self.schema(depth), self.schema(depth)])),
            24 => ("oneOf", json!([self.schema(depth), self.schema(depth), { "type": "null" }])),
            _ => ("not", self.schema(depth)),
        }
    }

    fn kind(&mut self) -> &'static str {
        const KINDS: [&str; 7] =
            ["null", "boolean", "integer", "number", "string", "array", "object"];
        KINDS[self.below(KINDS.len())]
    }

    fn distinct_values(&mut self) -> Value {
        let mut values: Vec<Value> = Vec::new();
        for _ in 0..3 {
            let value = self.value(1);
            if !values.contains(&value) {
                values.push(value);
            }
        }
        values.into()
    }
}
