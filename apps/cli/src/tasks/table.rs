//! Plain-text tables whose columns fit their contents.

use console::{measure_text_width, truncate_str};

/// Formats a header and rows, each as one line of at most `width` columns.
pub(crate) fn lines(head: &[&str], rows: &[Vec<String>], width: Option<usize>) -> Vec<String> {
    let mut widths: Vec<usize> = head.iter().map(|name| name.len()).collect();
    for row in rows {
        for (widest, cell) in widths.iter_mut().zip(row) {
            *widest = (*widest).max(measure_text_width(cell));
        }
    }
    let head: Vec<String> = head.iter().map(|name| (*name).to_owned()).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| {
            let room = width.saturating_sub(measure_text_width(cell));
            format!("{cell}{}", " ".repeat(room))
        });
        let line = cells.collect::<Vec<_>>().join("  ").trim_end().to_owned();
        width.map_or(line.clone(), |width| truncate_str(&line, width, "…").into_owned())
    };
    std::iter::once(&head).chain(rows).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::lines;

    #[test]
    fn table_columns_fit_their_contents() {
        let rows =
            [vec!["a".to_owned(), "größer".to_owned()], vec!["long".to_owned(), String::new()]];
        assert_eq!(lines(&["X", "Y"], &rows, None), ["X     Y", "a     größer", "long"]);
        assert_eq!(lines(&["X", "Y"], &rows, Some(8))[1], "a     g…");
    }
}
