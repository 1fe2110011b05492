//! The name that is closest to another one.

/// Returns the name with the smallest edit distance, if it is close enough to be a typing error.
pub(crate) fn closest<'a>(name: &str, names: &[&'a str]) -> Option<&'a str> {
    let length = name.chars().count();
    let most = (length / 3).max(2).min(length.saturating_sub(1));
    let distances = names.iter().map(|other| (distance(name, other), *other));
    let (distance, close) = distances.min_by_key(|(distance, _)| *distance)?;
    (distance <= most).then_some(close)
}

/// Returns the number of characters to insert, delete or replace.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().take(256).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (at, char) in a.chars().take(256).enumerate() {
        let mut diagonal = row[0];
        row[0] = at + 1;
        for (place, other) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(char != *other);
            diagonal = row[place + 1];
            row[place + 1] = replaced.min(row[place] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closest_name_is_at_most_a_typing_error_away() {
        let names = ["read_file", "write_file"];
        assert_eq!(closest("raed_file", &names), Some("read_file"));
        assert_eq!(closest("delete", &names), None);
        assert_eq!(closest("x", &[]), None);
    }
}
