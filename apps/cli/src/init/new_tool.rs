//! The tool of the new file, and the text of the file.

use std::path::Path;

use crate::serve::config::is_argument_name;

/// A tool that runs a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NewTool {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) command: Vec<String>,
    pub(super) interactive: bool,
}

/// Returns a name for the tool: the file name of the program, without its extension.
pub(super) fn name_for(program: &str) -> String {
    let stem = Path::new(program).file_stem().map(|stem| stem.to_string_lossy());
    let name: String = stem
        .unwrap_or_default()
        .chars()
        .map(|char| if char.is_ascii_alphanumeric() || "_-".contains(char) { char } else { '_' })
        .take(64)
        .collect();
    if name.is_empty() { "tool".to_owned() } else { name }
}

/// Returns the names in braces without duplicates, in the order of the command.
pub(super) fn placeholders(command: &[String]) -> Vec<&str> {
    let mut names = Vec::new();
    for word in command {
        let mut rest = word.as_str();
        while let Some((_, after)) = rest.split_once('{') {
            let Some((name, behind)) = after.split_once('}') else { break };
            if is_argument_name(name) && !names.contains(&name) {
                names.push(name);
            }
            rest = behind;
        }
    }
    names
}

impl NewTool {
    /// Returns the text of a file that serves the tool. Its comments show the keys that most tools
    /// need next.
    pub(super) fn file(&self, server: &str) -> String {
        let Self { name, description, command, interactive } = self;
        let words: Vec<String> = command.iter().map(|word| quoted(word)).collect();
        let mut text = format!(
            "# Tools that `outlive serve` serves. docs/outlive-toml.md documents every key.\n\
             # `outlive doctor` checks this file, and `outlive serve` reloads the tools when it changes.\n\
             \n\
             [server]\n\
             name = {} # the name that hosts show\n\
             # listen = \"127.0.0.1:8000\"\n\
             \n\
             [tools.{name}]\n\
             # The model reads this: say what the tool does, and when to use it.\n\
             description = {}\n\
             # Each {{name}} is an argument. Its value is one word of the command; no shell interprets it.\n\
             command = [{}]\n",
            quoted(server),
            quoted(description),
            words.join(", ")
        );
        if *interactive {
            text.push_str(
                "# The command writes input requests to descriptor 3 and reads the responses from descriptor 4.\n\
                 interactive = true\n",
            );
        }
        text.push_str(
            "# task_after = \"2s\"  # a call that takes longer becomes a task, for clients with tasks\n\
             # timeout = \"1h\"     # the command is ended after this time\n\
             # on_crash = \"rerun\" # run the command again after a crash of the machine, if that is safe\n\
             # read_only = true   # the command changes nothing, so hosts need not ask for approval\n",
        );
        for argument in placeholders(command) {
            text.push_str(&format!(
                "\n[tools.{name}.arguments.{argument}]\n\
                 type = \"string\" # or integer, number, boolean, array\n\
                 description = {}\n\
                 # enum = [\"a\", \"b\"] # allowed values\n",
                quoted(&format!("Value of {argument}."))
            ));
        }
        text
    }
}

/// Returns a TOML string. A JSON string is a valid TOML string.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{NewTool, name_for, placeholders};
    use crate::serve::config;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn tool_name_is_derived_from_program() {
        assert_eq!(name_for("./backup.sh"), "backup");
        assert_eq!(name_for("/usr/bin/pg dump"), "pg_dump");
        assert_eq!(name_for(""), "tool");
    }

    #[test]
    fn placeholders_are_unique_and_in_order() {
        let command = words(&["x", "--to={b}", "{a}", "{b}-{c}", "{}", "{1}", "{open"]);
        assert_eq!(placeholders(&command), ["b", "a", "c"]);
    }

    #[test]
    fn written_files_are_valid() {
        let commands: [&[&str]; 4] = [
            &["date"],
            &["pg_dump", "--file=backup.sql", "--", "{database}"],
            &["./a \"quoted\" program", "it's\\{x}", "line\nbreak"],
            &["convert", "{from}", "{to}", "--size={width}"],
        ];
        for command in commands {
            for interactive in [false, true] {
                let tool = NewTool {
                    name: name_for(command[0]),
                    description: "Does \"it\"\nfor you.".to_owned(),
                    command: words(command),
                    interactive,
                };
                let folder = tempfile(command[0], interactive);
                fs::write(&folder, tool.file("my \"server\"")).unwrap();
                let config = config::load(&folder);
                fs::remove_file(&folder).unwrap();
                let config = config.unwrap_or_else(|mistakes| panic!("{command:?}: {mistakes:?}"));
                assert!(config.warnings.is_empty(), "{:?}", config.warnings);
                assert_eq!(config.tools[0].arguments.len(), placeholders(&tool.command).len());
            }
        }
    }

    fn tempfile(name: &str, interactive: bool) -> std::path::PathBuf {
        let name =
            format!("outlive-init-{}-{}-{interactive}.toml", std::process::id(), name_for(name));
        std::env::temp_dir().join(name)
    }
}
