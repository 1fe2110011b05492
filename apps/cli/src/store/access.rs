//! Selects and opens the store. Opening never creates a store or migrates its tables.

use std::{env, fs, path::Path};

use outlive::{
    operator::Operator,
    store::{StoreError, StoreKind, StoreProbe, TaskId, probe},
};

use super::format::plain;
use crate::{
    error::{CliError, Kind, Result},
    paths,
    serve::config,
};

const SCHEMES: [&str; 4] = ["sqlite:", "postgres:", "postgresql:", "memory:"];

/// A store that an operator works on.
pub(crate) struct Store {
    pub(crate) operator: Operator,
}

impl Store {
    /// Opens a store that has the schema version of this program.
    pub(crate) async fn open(url: &str) -> Result<Self> {
        open(url).await.map(|operator| Self { operator })
    }

    /// Finds a task by its ID or a unique prefix.
    pub(crate) async fn find(&self, word: &str) -> Result<TaskId> {
        find(&self.operator, word).await?.ok_or_else(|| no_task(word))
    }
}

/// Resolves words to task IDs. A word without a match counts as an ID, which the store then reports
/// as missing.
pub(super) async fn tasks(operator: &Operator, words: Vec<String>) -> Result<Vec<TaskId>> {
    let mut tasks = Vec::new();
    for word in words {
        let found = find(operator, &word).await?;
        tasks.push(found.unwrap_or_else(|| TaskId::new(word)));
    }
    Ok(tasks)
}

async fn find(operator: &Operator, word: &str) -> Result<Option<TaskId>> {
    let mut found = operator.find(word, 2).await.map_err(trouble)?;
    match found.len() {
        0 => Ok(None),
        1 => Ok(found.pop()),
        _ => Err(CliError::usage(format_args!("several task IDs start with `{}`", plain(word)))
            .remedy("use a longer prefix; `outlive store list --all` lists all tasks")),
    }
}

pub(crate) fn no_task(task: &str) -> CliError {
    CliError::new(Kind::Failed, format_args!("no task has the ID {}", plain(task)))
        .remedy("run `outlive store list --all` to see all tasks")
}

/// Splits the optional leading URL from the other words, and resolves it.
pub(super) fn url_and_words(mut words: Vec<String>) -> Result<(String, Vec<String>)> {
    let is_url = |word: &String| SCHEMES.iter().any(|scheme| word.starts_with(scheme));
    let url = match words.first().is_some_and(is_url) {
        true => Some(words.remove(0)),
        false => None,
    };
    if let Some(second) = words.iter().find(|word| is_url(word)) {
        return Err(CliError::usage(format_args!("{} is not a task ID", without_password(second)))
            .remedy("pass one store URL, before the task IDs"));
    }
    Ok((url_or_own(url)?, words))
}

/// Returns `url`, or the default: OUTLIVE_STORE, the store of ./outlive.toml, or the store in the
/// data folder.
pub(crate) fn url_or_own(url: Option<String>) -> Result<String> {
    let chosen = || env::var("OUTLIVE_STORE").ok().filter(|url| !url.is_empty());
    match url.or_else(chosen).or_else(of_this_folder) {
        Some(url) => Ok(url),
        None => own_url(&paths::data()?),
    }
}

/// Returns the store that `outlive serve` uses in this folder: the one that outlive.toml names, or
/// its default if that exists.
///
/// Ignores a file that cannot be read.
fn of_this_folder() -> Option<String> {
    let file = Path::new("outlive.toml");
    if !file.exists() {
        return None;
    }
    let named = config::load(file).ok().and_then(|config| config.tasks.store);
    named.or_else(|| {
        let own = paths::of_server(Some(file)).ok()?.join("tasks.db");
        own.exists().then(|| format!("sqlite:{}", own.display()))
    })
}

/// Returns the URL of the only store in a data folder. The store need not exist.
///
/// Each server has a folder with a store there. Fails if there are several.
pub(crate) fn own_url(data: &Path) -> Result<String> {
    let servers = fs::read_dir(data.join("servers")).into_iter().flatten().flatten();
    let mut found: Vec<_> = servers.map(|folder| folder.path().join("tasks.db")).collect();
    found.push(data.join("tasks.db"));
    found.retain(|file| file.exists());
    found.sort();
    let url = |file: &Path| format!("sqlite:{}", file.display());
    match &found[..] {
        [] => Ok(url(&data.join("tasks.db"))),
        [only] => Ok(url(only)),
        [first, ..] => {
            let all: Vec<_> = found.iter().map(|file| format!("\n  {}", url(file))).collect();
            let what = format!("several stores are in {}:{}", data.display(), all.concat());
            Err(CliError::usage(what)
                .remedy(format_args!("name one of them: outlive store list {}", url(first))))
        }
    }
}

/// Opens an existing store that has the schema version of this program. Changes nothing.
pub(super) async fn open(url: &str) -> Result<Operator> {
    let StoreProbe { product, tables, known, .. } = look(url).await?;
    let place = without_password(url);
    let refused = |what: String| Err(CliError::new(Kind::Failed, what));
    match tables {
        _ if product == StoreKind::Memory => {
            Err(CliError::usage("an in-memory store exists only inside its server's process")
                .remedy("name the store of a server: sqlite:FILE or postgres://…"))
        }
        None => Err(CliError::unreachable(format_args!("no store exists at {place}"))
            .remedy("name another store, or create this one with `outlive serve`")),
        Some(tables) if tables < known => refused(format!(
            "{place} has schema version {tables}, but this program uses version {known}"
        ))
        .map_err(|trouble| {
            trouble.remedy(format_args!(
                "stop all servers of the older version, then run: outlive store migrate {place}"
            ))
        }),
        Some(tables) if tables > known => refused(format!(
            "{place} has schema version {tables}, but this program supports up to version {known}"
        ))
        .map_err(|trouble| trouble.remedy("upgrade this program")),
        Some(_) => {
            let operator = Operator::open(url).await.map_err(trouble)?;
            Ok(operator.named(&user()))
        }
    }
}

/// Probes a store without changing it.
pub(super) async fn look(url: &str) -> Result<StoreProbe> {
    probe(url).await.map_err(trouble)
}

/// Converts a store error to a message.
pub(crate) fn trouble(error: StoreError) -> CliError {
    CliError::unreachable(error).remedy("run `outlive doctor --store URL` to check the store")
}

/// Returns the name of the user, for the audit log.
fn user() -> String {
    let named = ["USER", "LOGNAME", "USERNAME"].iter().find_map(|name| env::var(name).ok());
    named.filter(|name| !name.is_empty()).unwrap_or_else(|| "unknown".to_owned())
}

/// Returns a store URL without its password.
pub(crate) fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let authority = match authority.rsplit_once('@') {
        Some((user, host)) => format!("{}@{host}", user.split(':').next().unwrap_or_default()),
        None => authority.to_owned(),
    };
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    // The password may also be a query parameter.
    let shown = query.split('&').filter(|pair| !pair.is_empty() && !pair.starts_with("password="));
    let shown: Vec<_> = shown.collect();
    match shown.is_empty() {
        true => format!("{scheme}://{authority}{path}"),
        false => format!("{scheme}://{authority}{path}?{}", shown.join("&")),
    }
}

#[cfg(test)]
mod tests {
    use super::{url_and_words, without_password};

    #[test]
    fn store_url_with_password_is_shown_without_it() {
        for (url, shown) in [
            ("postgres://ada:secret@db:5432/tasks", "postgres://ada@db:5432/tasks"),
            ("postgres://ada:s@e:c@db/t?sslmode=require", "postgres://ada@db/t?sslmode=require"),
            ("postgres://db/t?password=secret", "postgres://db/t"),
            ("postgres://db/t?user=a&password=secret&x=1", "postgres://db/t?user=a&x=1"),
            ("postgres://ada:secret@db", "postgres://ada@db"),
            ("sqlite:/srv/tasks.db", "sqlite:/srv/tasks.db"),
        ] {
            assert_eq!(without_password(url), shown);
        }
    }

    #[test]
    fn store_url_as_second_word_is_rejected() {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let (url, tasks) = url_and_words(words(&["sqlite:a.db", "one", "two"])).unwrap();
        assert_eq!((url.as_str(), tasks.len()), ("sqlite:a.db", 2));
        let second = url_and_words(words(&["sqlite:a.db", "postgres://ada:secret@db/t"]));
        assert!(!second.unwrap_err().to_string().contains("secret"));
    }
}
