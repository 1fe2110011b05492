//! BM25 ranking over short documents.

use std::collections::HashMap;

/// Saturation of repeated words.
const K1: f64 = 1.2;

/// Weight of the length of a document.
const B: f64 = 0.75;

/// Words of one document that are indexed, which bounds hostile descriptions.
const MAX_WORDS: usize = 2_000;

/// An index over documents, which are counted from zero.
#[derive(Debug, Default)]
pub(crate) struct Index {
    /// Documents with each word, and how often it occurs there.
    postings: HashMap<String, Vec<(usize, f64)>>,
    lengths: Vec<f64>,
    mean: f64,
}

impl Index {
    /// Creates an index. Each document is a list of fields with their weights.
    pub(crate) fn new<'a, F>(documents: impl IntoIterator<Item = F>) -> Self
    where
        F: IntoIterator<Item = (&'a str, f64)>,
    {
        let mut index = Self::default();
        for (number, fields) in documents.into_iter().enumerate() {
            let mut counts: HashMap<String, f64> = HashMap::new();
            let mut length = 0.0;
            for (text, weight) in fields {
                for word in words(text).take(MAX_WORDS) {
                    *counts.entry(word).or_default() += weight;
                    length += 1.0;
                }
            }
            for (word, count) in counts {
                index.postings.entry(word).or_default().push((number, count));
            }
            index.lengths.push(length);
        }
        let total: f64 = index.lengths.iter().sum();
        index.mean = total / (index.lengths.len().max(1) as f64);
        index
    }

    /// Returns the best documents for a query, best first.
    pub(crate) fn search(&self, query: &str, most: usize) -> Vec<usize> {
        let mut scores: HashMap<usize, f64> = HashMap::new();
        for word in words(query).take(MAX_WORDS) {
            let Some(found) = self.postings.get(&word) else { continue };
            let all = self.lengths.len() as f64;
            let with = found.len() as f64;
            let rarity = (1.0 + (all - with + 0.5) / (with + 0.5)).ln();
            for (number, count) in found {
                let length = self.lengths[*number] / self.mean.max(1.0);
                let frequency = count * (K1 + 1.0) / (count + K1 * (1.0 - B + B * length));
                *scores.entry(*number).or_default() += rarity * frequency;
            }
        }
        let mut ranked: Vec<(usize, f64)> = scores.into_iter().collect();
        // Equal scores keep the order of the documents.
        ranked.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        ranked.into_iter().take(most).map(|(number, _)| number).collect()
    }
}

/// Splits a text into lower-case words, also inside of `snake_case` and `camelCase`. A plural `s`
/// is removed, so that `file` finds `files`.
fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split(|char: char| !char.is_alphanumeric()).flat_map(split_case).filter_map(|word| {
        let mut word = word.to_lowercase();
        if word.len() > 3 && word.ends_with('s') && !word.ends_with("ss") {
            word.pop();
        }
        (!word.is_empty()).then_some(word)
    })
}

/// Splits `camelCase` before each capital after a small letter.
fn split_case(word: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut was_lower) = (0, false);
    for (at, char) in word.char_indices() {
        if was_lower && char.is_uppercase() {
            parts.push(&word[start..at]);
            start = at;
        }
        was_lower = char.is_lowercase() || char.is_numeric();
    }
    parts.push(&word[start..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index() -> Index {
        Index::new([
            [("files__read_file", 3.0), ("Reads one file from the disk", 1.0)],
            [("mail__sendMessage", 3.0), ("Sends a message to people", 1.0)],
            [("files__list", 3.0), ("Lists the files of a folder", 1.0)],
        ])
    }

    #[test]
    fn search_returns_the_best_documents_first() {
        assert_eq!(index().search("read a file", 2), [0, 2]);
        assert_eq!(index().search("send messages", 5), [1]);
        assert!(index().search("database", 5).is_empty());
    }

    #[test]
    fn words_are_split_at_underscores_and_capitals() {
        let split: Vec<String> = words("mail__sendMessages v2").collect();
        assert_eq!(split, ["mail", "send", "message", "v2"]);
    }
}
