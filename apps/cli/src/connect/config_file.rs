//! Adds a server to a host's file, and keeps everything else in it.

use std::{fs, io, path::Path};

use serde_json::{Map, Value};

use crate::error::{CliError, Result};

/// Adds `entry` under `member` and `name`. The file need not exist. Returns whether an entry was
/// replaced.
pub(super) fn add(
    file: &Path,
    member: &str,
    name: &str,
    entry: Map<String, Value>,
) -> Result<bool> {
    let mut config = read(file)?;
    let servers = config.entry(member).or_insert_with(|| Map::new().into());
    let Value::Object(servers) = servers else {
        return Err(unusable(file, &format!("`{member}` is not an object")));
    };
    let replaced = servers.insert(name.to_owned(), entry.into()).is_some();
    write(file, &Value::Object(config)).map_err(|error| {
        CliError::usage(format_args!("cannot write {}: {error}", file.display()))
            .remedy("omit --write to print the entry, and add it by hand")
    })?;
    Ok(replaced)
}

fn read(file: &Path) -> Result<Map<String, Value>> {
    let text = match fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Map::new()),
        Err(error) => return Err(unusable(file, &error.to_string())),
    };
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    match serde_json::from_str(&text) {
        Ok(Value::Object(config)) => Ok(config),
        Ok(_) => Err(unusable(file, "the file is not a JSON object")),
        // Some hosts allow comments, which rewriting the file would delete.
        Err(error) => Err(unusable(file, &format!("the file is not plain JSON: {error}"))),
    }
}

fn unusable(file: &Path, reason: &str) -> CliError {
    CliError::usage(format_args!("cannot add the server to {}: {reason}", file.display()))
        .remedy("omit --write to print the entry, and add it by hand")
}

/// Replaces the file atomically, so that a crash cannot truncate it.
fn write(file: &Path, config: &Value) -> io::Result<()> {
    if let Some(folder) = file.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs::create_dir_all(folder)?;
    }
    let mut text = serde_json::to_string_pretty(config)?;
    text.push('\n');
    let draft = file.with_extension("json.new");
    fs::write(&draft, text)?;
    fs::rename(&draft, file)
}

#[cfg(test)]
mod tests {
    use std::{env, fs, path::PathBuf};

    use serde_json::{Map, Value, json};

    use super::add;

    fn file(name: &str) -> PathBuf {
        env::temp_dir().join(format!("outlive-connect-{}-{name}/mcp.json", std::process::id()))
    }

    fn entry(url: &str) -> Map<String, Value> {
        Map::from_iter([("url".to_owned(), url.into())])
    }

    #[test]
    fn missing_file_is_created_with_its_folder() {
        let file = file("missing");
        assert!(!add(&file, "servers", "a", entry("x")).unwrap());
        let written = fs::read_to_string(&file).unwrap();
        assert_eq!(
            written,
            "{\n  \"servers\": {\n    \"a\": {\n      \"url\": \"x\"\n    }\n  }\n}\n"
        );
        fs::remove_dir_all(file.parent().unwrap()).unwrap();
    }

    #[test]
    fn existing_members_keep_their_order() {
        let file = file("kept");
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, r#"{"z": 1, "servers": {"b": {}, "a": {"url": "old"}}, "y": [2]}"#)
            .unwrap();
        assert!(add(&file, "servers", "a", entry("new")).unwrap());
        let written: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        let wanted = json!({"z": 1, "servers": {"b": {}, "a": {"url": "new"}}, "y": [2]});
        assert_eq!(written.to_string(), wanted.to_string());
        fs::remove_dir_all(file.parent().unwrap()).unwrap();
    }

    #[test]
    fn file_with_comments_is_not_changed() {
        let file = file("comments");
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        let text = "{ // mine\n \"servers\": {} }";
        fs::write(&file, text).unwrap();
        assert!(add(&file, "servers", "a", entry("x")).is_err());
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
        fs::remove_dir_all(file.parent().unwrap()).unwrap();
    }
}
