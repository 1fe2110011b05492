//! [`ConsoleBuilder`]: the settings of a console.

use std::{fmt, sync::Arc, time::Duration};

use outlive::{
    people::{AnswerLinks, People, PeopleConfig, Vault},
    server::{BuildError, SealKeys, Server},
    store::MemoryStore,
};

use crate::{
    console::Console,
    pages::answer::AnswerPages,
    sign_in::{
        check::SignIn,
        oauth::{OAuthLogin, OAuthSignIn},
        roles::Roles,
        session::{IDLE_TIMEOUT, Sessions, TTL},
    },
    state::ConsoleState,
};

/// Builder of a [`Console`].
#[must_use]
pub struct ConsoleBuilder {
    source: Source,
    path: String,
    public_url: Option<String>,
    people: PeopleConfig,
    login: Option<OAuthLogin>,
    session_idle_timeout: Duration,
    session_ttl: Duration,
}

/// Where the console reads.
enum Source {
    Server(Server),
    /// A store without a server.
    Store(People),
}

impl Console {
    /// Returns a builder of the console of a server.
    #[expect(clippy::new_ret_no_self, reason = "a console has settings")]
    pub fn new(server: &Server) -> ConsoleBuilder {
        ConsoleBuilder::from_source(Source::Server(server.clone()))
    }

    /// Returns a builder of an operator's console of a store without a server. It decides nothing
    /// for people, because it cannot verify who opens it.
    pub fn store(people: People) -> ConsoleBuilder {
        ConsoleBuilder::from_source(Source::Store(people))
    }
}

impl ConsoleBuilder {
    fn from_source(source: Source) -> Self {
        Self {
            source,
            path: "/console".to_owned(),
            public_url: None,
            people: PeopleConfig::default(),
            login: None,
            session_idle_timeout: IDLE_TIMEOUT,
            session_ttl: TTL,
        }
    }

    /// Sets the path of the console. The default is `/console`.
    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.path = path.into();
        self
    }

    /// Sets the address of the server for people, as in `https://ops.example.com/outlive`. A proxy
    /// may strip its path.
    pub fn public_url(mut self, url: impl Into<String>) -> Self {
        self.public_url = Some(url.into().trim_end_matches('/').to_owned());
        self
    }

    /// Adds a person that is an operator.
    pub fn operator(mut self, person: impl Into<String>) -> Self {
        self.people.operators.push(person.into());
        self
    }

    /// Sets the scope whose holders are operators.
    pub fn operator_scope(mut self, scope: impl Into<String>) -> Self {
        self.people.operator_scope = Some(scope.into());
        self
    }

    /// Adds a person that is a viewer.
    pub fn viewer(mut self, person: impl Into<String>) -> Self {
        self.people.viewers.push(person.into());
        self
    }

    /// Sets the scope whose holders are viewers.
    pub fn viewer_scope(mut self, scope: impl Into<String>) -> Self {
        self.people.viewer_scope = Some(scope.into());
        self
    }

    /// Sets whether arguments, journals and results are visible only to the person of the task.
    /// Disabled by default: viewers and operators see them too.
    pub fn owners_only(mut self, enabled: bool) -> Self {
        self.people.owners_only = enabled;
        self
    }

    /// Lets people sign in with OAuth. Without it, people sign in with a deciding token, or on a
    /// server without an authenticator with a one-time link.
    pub fn login(mut self, login: OAuthLogin) -> Self {
        self.login = Some(login);
        self
    }

    /// Sets the time after which an unused session ends. The default is 12 hours.
    pub fn session_idle_timeout(mut self, timeout: Duration) -> Self {
        self.session_idle_timeout = timeout;
        self
    }

    /// Sets the time after which every session ends. The default is 7 days.
    pub fn session_ttl(mut self, ttl: Duration) -> Self {
        self.session_ttl = ttl;
        self
    }

    /// Builds the console.
    ///
    /// # Errors
    ///
    /// If the path is not valid, or if the server has no store with lists and decisions.
    pub fn build(self) -> Result<Console, BuildError> {
        let path = self.path.trim_end_matches('/').to_owned();
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.~".contains(&byte);
        if !path.starts_with('/') || path.contains("//") || !path.bytes().all(is_plain) {
            let error =
                format!("`{}` is not a path of a console; use one such as /console", self.path);
            return Err(BuildError::new(error));
        }
        let (people, vault, answers, is_store) = match self.source {
            Source::Server(server) => {
                let people = People::new(&server)?;
                let no_store = || BuildError::new("the server of a console needs a task store");
                let vault = Vault::new(&server).ok_or_else(no_store)?;
                let answers = AnswerPages::new(AnswerLinks::new(&server), Some(people.clone()));
                (people, vault, Some(answers), false)
            }
            Source::Store(people) => {
                let keys =
                    SealKeys::random().map_err(|error| BuildError::new(error.to_string()))?;
                (people, Vault::open(Arc::new(MemoryStore::new()), keys), None, true)
            }
        };
        let sessions = Sessions::new(vault.clone(), self.session_idle_timeout, self.session_ttl);
        let oauth = self.login.map(|it| OAuthSignIn::new(it, vault.clone(), self.session_ttl));
        let roles = Roles::new(self.people, is_store);
        let sign_in = SignIn::new(vault, sessions, roles, oauth, self.public_url);
        Ok(Console::from_parts(answers, Some(ConsoleState::new(people, sign_in, path))))
    }
}

impl fmt::Debug for ConsoleBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConsoleBuilder")
            .field("path", &self.path)
            .field("public_url", &self.public_url)
            .field("people", &self.people)
            .field("login", &self.login)
            .finish_non_exhaustive()
    }
}
