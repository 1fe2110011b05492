//! The command line: a word, then options, then nothing that nobody asked for.

use std::env;

use anyhow::{Result, bail};

/// What was typed after `cargo xtask`. Readers take out what they know; [`Args::finish`] refuses
/// the rest.
#[derive(Debug)]
pub struct Args(Vec<String>);

impl Args {
    /// Returns what was typed.
    pub fn from_env() -> Self {
        Self(env::args().skip(1).collect())
    }

    /// Returns these words as if they had been typed.
    pub fn from_words(words: &[&str]) -> Self {
        Self(words.iter().map(|&word| word.to_owned()).collect())
    }

    /// Takes the next argument if there is one.
    pub fn word(&mut self) -> Option<String> {
        if self.0.is_empty() { None } else { Some(self.0.remove(0)) }
    }

    /// Takes `name` out and says whether it was there.
    pub fn flag(&mut self, name: &str) -> bool {
        let before = self.0.len();
        self.0.retain(|arg| arg != name);
        self.0.len() < before
    }

    /// Takes every `name VALUE` out.
    pub fn values(&mut self, name: &str) -> Result<Vec<String>> {
        let mut values = Vec::new();
        while let Some(at) = self.0.iter().position(|arg| arg == name) {
            if at + 1 == self.0.len() {
                bail!("`{name}` needs a value");
            }
            values.push(self.0.remove(at + 1));
            self.0.remove(at);
        }
        Ok(values)
    }

    /// Takes one `name VALUE` out.
    pub fn value(&mut self, name: &str) -> Result<Option<String>> {
        let mut values = self.values(name)?;
        if values.len() > 1 {
            bail!("`{name}` is given {} times; once is enough", values.len());
        }
        Ok(values.pop())
    }

    /// Takes `--` and all words behind it out: a command to run.
    pub fn command(&mut self) -> Option<Vec<String>> {
        let at = self.0.iter().position(|arg| arg == "--")?;
        Some(self.0.split_off(at).split_off(1))
    }

    /// Hands everything on to another program.
    pub fn rest(self) -> Vec<String> {
        self.0
    }

    /// Ends the reading: what is left is a mistake.
    pub fn finish(self) -> Result<()> {
        match self.0.as_slice() {
            [] => Ok(()),
            [first, ..] => {
                bail!("unknown argument `{first}`; `cargo xtask help` lists what there is")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Args;

    fn typed(line: &str) -> Args {
        Args::from_words(&line.split_whitespace().collect::<Vec<_>>())
    }

    #[test]
    fn options_are_found_in_any_order() {
        let mut args = typed("--only fmt --list --only tidy");
        assert_eq!(args.values("--only").unwrap(), ["fmt", "tidy"]);
        assert!(args.flag("--list"));
        assert!(args.finish().is_ok());
    }

    #[test]
    fn an_option_without_its_value_is_refused() {
        assert!(typed("--only").values("--only").is_err());
    }

    #[test]
    fn words_behind_two_dashes_are_a_command() {
        let mut args = typed("--wheel -- cargo test --wheel");
        assert_eq!(args.command().unwrap(), ["cargo", "test", "--wheel"]);
        assert!(args.flag("--wheel") && args.finish().is_ok());
        assert_eq!(typed("--wheel").command(), None);
    }

    #[test]
    fn what_nobody_took_is_refused() {
        assert!(typed("--onyl fmt").finish().is_err());
    }
}
