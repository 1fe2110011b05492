//! The command line: a command, its options, and an error for the rest.

use std::env;

use anyhow::{Result, bail};

/// The arguments after `cargo xtask`. Readers remove the arguments they know; [`Args::finish`]
/// rejects the rest.
#[derive(Debug)]
pub struct Args(Vec<String>);

impl Args {
    /// Returns the arguments of this process.
    pub fn from_env() -> Self {
        Self(env::args().skip(1).collect())
    }

    /// Returns these words as arguments.
    pub fn from_words(words: &[&str]) -> Self {
        Self(words.iter().map(|&word| word.to_owned()).collect())
    }

    /// Removes and returns the next argument.
    pub fn word(&mut self) -> Option<String> {
        if self.0.is_empty() { None } else { Some(self.0.remove(0)) }
    }

    /// Removes `name` and returns whether it was present.
    pub fn flag(&mut self, name: &str) -> bool {
        let before = self.0.len();
        self.0.retain(|arg| arg != name);
        self.0.len() < before
    }

    /// Removes every `name VALUE` and returns the values.
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

    /// Removes one `name VALUE` and returns the value.
    pub fn value(&mut self, name: &str) -> Result<Option<String>> {
        let mut values = self.values(name)?;
        if values.len() > 1 {
            bail!("`{name}` is given {} times; give it once", values.len());
        }
        Ok(values.pop())
    }

    /// Removes `--` and all words after it: a command to run.
    pub fn command(&mut self) -> Option<Vec<String>> {
        let at = self.0.iter().position(|arg| arg == "--")?;
        Some(self.0.split_off(at).split_off(1))
    }

    /// Returns the remaining arguments for another program.
    pub fn rest(self) -> Vec<String> {
        self.0
    }

    /// Rejects remaining arguments.
    pub fn finish(self) -> Result<()> {
        match self.0.as_slice() {
            [] => Ok(()),
            [first, ..] => {
                bail!("unknown argument `{first}`; see `cargo xtask help`")
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
    fn options_are_parsed_in_any_order() {
        let mut args = typed("--only fmt --list --only tidy");
        assert_eq!(args.values("--only").unwrap(), ["fmt", "tidy"]);
        assert!(args.flag("--list"));
        assert!(args.finish().is_ok());
    }

    #[test]
    fn option_without_value_is_rejected() {
        assert!(typed("--only").values("--only").is_err());
    }

    #[test]
    fn words_after_two_dashes_are_a_command() {
        let mut args = typed("--wheel -- cargo test --wheel");
        assert_eq!(args.command().unwrap(), ["cargo", "test", "--wheel"]);
        assert!(args.flag("--wheel") && args.finish().is_ok());
        assert_eq!(typed("--wheel").command(), None);
    }

    #[test]
    fn unknown_argument_is_rejected() {
        assert!(typed("--onyl fmt").finish().is_err());
    }
}
