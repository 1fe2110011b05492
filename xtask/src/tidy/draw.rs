//! `cargo xtask draw`: comments and messages drawn at random, to be read by a person.
//!
//! Word rules find words. Whether a sentence can be understood without the code below it, only a reader can tell.

use anyhow::{Context, Result};
use xtask::args::Args;
use xtask::process;

use super::tree::{File, Tree};

/// Words that a literal needs to count as a message.
const MIN_WORDS: usize = 4;

pub(crate) fn run(mut args: Args) -> Result<()> {
    let mut number = |name: &str, default: u64| {
        let value = args.value(name)?;
        value.map_or(Ok(default), |value| {
            value.parse().with_context(|| format!("{name} takes a number, not `{value}`"))
        })
    };
    let seed = number("--seed", 1)?;
    let comments = number("--comments", 100)?;
    let messages = number("--messages", 40)?;
    args.finish()?;
    let tree = Tree::read(process::root())?;
    let mut random = Random(seed);
    let drawn = [
        ("comments", tree.product_files().flat_map(comment_blocks).collect::<Vec<_>>(), comments),
        ("messages", tree.product_files().flat_map(literals).collect(), messages),
    ];
    for (what, mut all, wanted) in drawn {
        println!("{} of {} {what}, seed {seed}:\n", wanted.min(all.len() as u64), all.len());
        for number in 1..=wanted {
            if all.is_empty() {
                break;
            }
            let (place, text) = all.swap_remove(random.below(all.len()));
            println!("{number}. {place}\n   {}\n", text.replace('\n', "\n   "));
        }
    }
    Ok(())
}

/// Returns the comments of a file outside of its tests: lines that follow each other are one.
fn comment_blocks(file: &File) -> Vec<(String, String)> {
    let mut blocks: Vec<(usize, usize, String)> = Vec::new();
    let mut fenced = false;
    for line in file.lines_without_tests() {
        let text = line.comment.trim();
        fenced ^= text.starts_with("```");
        if text.is_empty() || fenced || text.starts_with("```") {
            continue;
        }
        match blocks.last_mut() {
            Some((_, last, block)) if *last + 1 == line.number && line.code.trim().is_empty() => {
                *last = line.number;
                block.push('\n');
                block.push_str(text);
            }
            _ => blocks.push((line.number, line.number, text.to_owned())),
        }
    }
    blocks.into_iter().map(|(line, _, text)| (format!("{}:{line}", file.path), text)).collect()
}

/// Returns the string literals of a file outside of its tests that read like messages.
fn literals(file: &File) -> Vec<(String, String)> {
    let texts = file.lines_without_tests().flat_map(|line| {
        line.literals
            .iter()
            .map(move |text| (format!("{}:{}", file.path, line.number), text.clone()))
    });
    texts.filter(|(_, text)| text.split_whitespace().count() >= MIN_WORDS).collect()
}

/// A generator of numbers that is the same on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % limit as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::{Random, comment_blocks, literals};
    use crate::tidy::tree::Tree;

    #[test]
    fn adjacent_comment_lines_are_one_comment() {
        let text = "// One\n// two.\nfn a() {} // Three.\n// Four.\n/// ```\n/// code();\n/// ```\n\
                    #[cfg(test)]\nmod tests {\n    // Five.\n}\n";
        let tree = Tree::of(&[("crates/a/src/lib.rs", text)]);
        let blocks = comment_blocks(&tree.files()[0]);
        let texts: Vec<&str> = blocks.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(texts, ["One\ntwo.", "Three.\nFour."]);
        assert_eq!(blocks[0].0, "crates/a/src/lib.rs:1");
    }

    #[test]
    fn literal_of_few_words_is_not_a_message() {
        let text = "let a = [\"tools/list\", \"the store is not available\"];\n";
        let tree = Tree::of(&[("crates/a/src/lib.rs", text)]);
        assert_eq!(literals(&tree.files()[0]).len(), 1);
    }

    #[test]
    fn same_seed_gives_same_numbers() {
        let draw = |seed| {
            let mut random = Random(seed);
            (0..5).map(|_| random.below(1_000)).collect::<Vec<_>>()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }
}
