//! Which store is meant, and whether it may be touched: a look makes no store, and brings no tables
//! up to date under a server of an older version.

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

/// A store that an operator looks after.
pub(crate) struct Store {
    pub(crate) operator: Operator,
}

impl Store {
    /// Opens a store whose tables are those of this program.
    pub(crate) async fn open(url: &str) -> Result<Self> {
        open(url).await.map(|operator| Self { operator })
    }

    /// Finds a task by its ID or by the beginning of its ID.
    pub(crate) async fn find(&self, word: &str) -> Result<TaskId> {
        find(&self.operator, word).await?.ok_or_else(|| no_task(word))
    }
}

/// The tasks that these words mean. A word that means none is taken for an id, and found missing by
/// whoever looks for it.
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
        _ => Err(CliError::usage(format_args!("more than one task begins with `{}`", plain(word)))
            .remedy("write more of it; `outlive store list --all` shows all there are")),
    }
}

pub(crate) fn no_task(task: &str) -> CliError {
    CliError::new(Kind::Failed, format_args!("there is no task {}", plain(task)))
        .remedy("`outlive store list --all` shows all there are")
}

/// The URL and the other words of a command line: a URL comes first, and may be left out.
pub(super) fn url_and_words(mut words: Vec<String>) -> Result<(String, Vec<String>)> {
    let is_url = |word: &String| SCHEMES.iter().any(|scheme| word.starts_with(scheme));
    let url = match words.first().is_some_and(is_url) {
        true => Some(words.remove(0)),
        false => None,
    };
    if let Some(second) = words.iter().find(|word| is_url(word)) {
        return Err(CliError::usage(format_args!("{} is no task", without_password(second)))
            .remedy("the URL of a store comes first, and there is one"));
    }
    Ok((url_or_own(url)?, words))
}

/// This URL, that of OUTLIVE_STORE, that of the server whose file is in this folder, or that of the
/// store in the data folder.
pub(crate) fn url_or_own(url: Option<String>) -> Result<String> {
    let chosen = || env::var("OUTLIVE_STORE").ok().filter(|url| !url.is_empty());
    match url.or_else(chosen).or_else(of_this_folder) {
        Some(url) => Ok(url),
        None => own_url(&paths::data()?),
    }
}

/// The store that `outlive serve` uses in this folder: the one that its file names, or its own if it
/// is there. A file that cannot be read names none.
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

/// The URL of the store in a data folder, which may not be there yet. Each server has a folder of
/// its own in it; where there are several stores, one has to be named.
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
            let what =
                format!("there is more than one store in {}:{}", data.display(), all.concat());
            Err(CliError::usage(what)
                .remedy(format_args!("name one: outlive store list {}", url(first))))
        }
    }
}

/// Opens a store whose tables are those of this program; none is made, and none is changed.
pub(super) async fn open(url: &str) -> Result<Operator> {
    let StoreProbe { product, tables, known, .. } = look(url).await?;
    let place = without_password(url);
    let refused = |what: String| Err(CliError::new(Kind::Failed, what));
    match tables {
        _ if product == StoreKind::Memory => Err(CliError::usage("a store in memory is in its server's process only")
            .remedy("name the store of a server: sqlite:FILE or postgres://…")),
        None => Err(CliError::unreachable(format_args!("there is no store at {place}"))
            .remedy("`outlive serve` makes one; or name another")),
        Some(tables) if tables < known => refused(format!(
            "the tables of {place} have version {tables}, and this program uses version {known}"
        ))
        .map_err(|trouble| {
            trouble.remedy(format_args!(
                "when all its servers are stopped or of this version: outlive store migrate {place}"
            ))
        }),
        Some(tables) if tables > known => refused(format!(
            "the tables of {place} have version {tables}, and this program knows version {known} only"
        ))
        .map_err(|trouble| trouble.remedy("upgrade this program")),
        Some(_) => {
            let operator = Operator::open(url).await.map_err(trouble)?;
            Ok(operator.named(&user()))
        }
    }
}

/// Looks at a store without touching it.
pub(super) async fn look(url: &str) -> Result<StoreProbe> {
    probe(url).await.map_err(trouble)
}

/// What a store says, as what this program says. It says itself what to do.
pub(crate) fn trouble(error: StoreError) -> CliError {
    CliError::unreachable(error).remedy("`outlive doctor --store URL` looks closer")
}

/// Who uses this program, for those who look at what has happened.
fn user() -> String {
    let named = ["USER", "LOGNAME", "USERNAME"].iter().find_map(|name| env::var(name).ok());
    named.filter(|name| !name.is_empty()).unwrap_or_else(|| "unknown".to_owned())
}

/// A URL as it may be shown.
pub(crate) fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let authority = match authority.rsplit_once('@') {
        Some((user, host)) => format!("{}@{host}", user.split(':').next().unwrap_or_default()),
        None => authority.to_owned(),
    };
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    // A password may also stand among the parameters.
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
    fn a_password_is_not_shown() {
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
    fn a_url_comes_first_and_there_is_one() {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let (url, tasks) = url_and_words(words(&["sqlite:a.db", "one", "two"])).unwrap();
        assert_eq!((url.as_str(), tasks.len()), ("sqlite:a.db", 2));
        let second = url_and_words(words(&["sqlite:a.db", "postgres://ada:secret@db/t"]));
        assert!(!second.unwrap_err().to_string().contains("secret"));
    }
}
