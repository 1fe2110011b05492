//! [`Visitor`]: a reader with a role and a credential.

use outlive_protocol::{Principal, Scopes};
use outlive_tasks::store::{Audience, InboxItem, InboxReader, IndexedTask, TaskId};

use super::error::PeopleError;

/// The names and scopes that give people a role.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "settings that a console fills in")]
pub struct PeopleConfig {
    /// Persons that are operators.
    pub operators: Vec<String>,
    /// Scope whose holders are operators.
    pub operator_scope: Option<String>,
    /// Persons that are viewers.
    pub viewers: Vec<String>,
    /// Scope whose holders are viewers.
    pub viewer_scope: Option<String>,
    /// Whether arguments, journal and result of a task are visible only to its person.
    pub owners_only: bool,
}

/// Role of a visitor. Every visitor is also a person with own tasks and own input requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(clippy::exhaustive_enums, reason = "every function decides for every role")]
pub enum Role {
    /// Sees own tasks, own input requests, and those addressed to the person.
    Person,
    /// Sees everything, and changes nothing that belongs to others.
    Viewer,
    /// Sees everything, and may act on all tasks.
    Operator,
}

/// Path by which a visitor acts, for votes and the audit log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "every path has its own name in the audit log")]
pub enum Channel {
    /// The pages of the console.
    Console,
    /// The HTTP API.
    Api,
    /// The command line.
    Cli,
    /// An answer link.
    Link,
}

/// An authenticated reader.
#[derive(Clone, Debug)]
pub struct Visitor {
    standing: Standing,
    person: Option<String>,
    principal: Option<Principal>,
    role: Role,
    channel: Channel,
    owners_only: bool,
}

/// The kind of a visitor's credential.
#[derive(Clone, Debug)]
enum Standing {
    /// A console session or a deciding credential.
    Deciding,
    /// An MCP token. It has the rights of its principal at the MCP endpoint, and decides nothing.
    Plain,
    /// An operator with access to the store, whose person is unknown.
    Store,
    /// The holder of an answer link.
    Link(LinkedRequest),
}

/// The only input request that the holder of an answer link sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LinkedRequest {
    pub(super) task: TaskId,
    pub(super) name: String,
    /// Digest that the page must show.
    pub(super) digest: String,
    /// Whether the link belongs to a channel and not to a person.
    pub(super) is_label: bool,
}

impl Channel {
    /// Returns the name in votes and audit events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Console => "console",
            Self::Api => "api",
            Self::Cli => "cli",
            Self::Link => "link",
        }
    }
}

impl Visitor {
    /// Creates a visitor from an authenticated principal.
    ///
    /// Only a [deciding](Principal::is_deciding) principal is more than a person with own tasks: an
    /// agent has the other tokens. The local user is an operator.
    pub fn new(principal: &Principal, config: &PeopleConfig, channel: Channel) -> Self {
        let person = principal.person();
        let has = |names: &[String], scope: &Option<String>| {
            person.is_some_and(|person| names.iter().any(|name| name == person))
                || scope.as_deref().is_some_and(|scope| principal.has_scope(scope))
        };
        let PeopleConfig { operators, operator_scope, viewers, viewer_scope, owners_only } = config;
        let (standing, role) = match principal.is_deciding() {
            false => (Standing::Plain, Role::Person),
            true if principal.is_local() || has(operators, operator_scope) => {
                (Standing::Deciding, Role::Operator)
            }
            true if has(viewers, viewer_scope) => (Standing::Deciding, Role::Viewer),
            true => (Standing::Deciding, Role::Person),
        };
        Self {
            standing,
            person: person.map(str::to_owned),
            principal: Some(principal.clone()),
            role,
            channel,
            owners_only: *owners_only,
        }
    }

    /// Creates the operator of a store. It never decides for people, because nothing verifies who
    /// it is.
    pub fn operator() -> Self {
        Self {
            standing: Standing::Store,
            person: None,
            principal: None,
            role: Role::Operator,
            channel: Channel::Cli,
            owners_only: false,
        }
    }

    /// Creates the holder of an answer link.
    pub(super) fn link(holder: String, request: LinkedRequest) -> Self {
        Self {
            standing: Standing::Link(request),
            person: Some(holder),
            principal: None,
            role: Role::Person,
            channel: Channel::Link,
            owners_only: false,
        }
    }

    /// Returns the person; `None` for the operator of a store and for an anonymous caller.
    pub fn person(&self) -> Option<&str> {
        self.person.as_deref()
    }

    /// Returns the role.
    pub fn role(&self) -> Role {
        self.role
    }

    /// Returns the path by which the visitor acts.
    pub fn channel(&self) -> Channel {
        self.channel
    }

    /// Returns whether the credential may decide for its person.
    pub fn may_decide(&self) -> bool {
        self.person.is_some() && matches!(self.standing, Standing::Deciding | Standing::Link(_))
    }

    /// Returns the name in the audit log.
    pub(super) fn actor(&self) -> String {
        match (&self.standing, &self.principal, self.person()) {
            (Standing::Link(_), _, Some(holder)) => holder.to_owned(),
            (_, Some(_), Some(person)) if self.role == Role::Operator => {
                format!("operator:{person}")
            }
            (_, Some(principal), _) => principal.key().to_owned(),
            (_, None, _) => "operator".to_owned(),
        }
    }

    /// Returns the key that sealed data of the visitor belongs to.
    pub(super) fn seal_key(&self) -> &str {
        self.principal.as_ref().map_or("operator", Principal::key)
    }

    /// Returns whether the visitor sees the tasks of all callers.
    pub(super) fn sees_all(&self) -> bool {
        self.role != Role::Person
    }

    /// Returns the principal whose tasks alone an MCP token sees.
    pub(super) fn only_principal(&self) -> Option<&str> {
        match self.standing {
            Standing::Plain => self.principal.as_ref().map(Principal::key),
            _ => None,
        }
    }

    /// Returns whether a task is the visitor's own. An MCP token owns the tasks of its principal, a
    /// person those of all its clients.
    pub(super) fn owns(&self, principal: &str, person: Option<&str>) -> bool {
        match (&self.standing, self.person()) {
            (Standing::Deciding, Some(own)) => person == Some(own),
            (Standing::Plain, Some(_)) => self.only_principal() == Some(principal),
            _ => false,
        }
    }

    /// Returns whether a task is the visitor's own.
    pub(super) fn owns_task(&self, task: &IndexedTask) -> bool {
        self.owns(&task.summary.principal, task.person.as_deref())
    }

    /// Returns whether the visitor sees a task.
    pub(super) fn sees_task(&self, task: &IndexedTask) -> bool {
        self.sees_all() || self.owns_task(task)
    }

    /// Returns whether the visitor sees arguments, journal and result of a task.
    pub(super) fn sees_contents(&self, task: &IndexedTask) -> bool {
        !self.owners_only || self.owns_task(task)
    }

    /// Returns whether the visitor owns the task of an input request.
    pub(super) fn owns_request(&self, item: &InboxItem) -> bool {
        self.owns(&item.principal, item.person.as_deref())
    }

    /// Returns whether an input request for people is addressed to the visitor.
    pub(super) fn is_addressed(&self, item: &InboxItem) -> bool {
        match (&self.standing, self.person()) {
            (Standing::Link(request), _) => {
                item.audience.is_people() && request.task == item.task && request.name == item.name
            }
            (Standing::Deciding, Some(person)) => {
                item.audience.contains(person, &self.scopes_for(&item.audience))
            }
            _ => false,
        }
    }

    /// Returns whether the visitor sees an input request.
    pub(super) fn sees_request(&self, item: &InboxItem) -> bool {
        self.sees_all() || self.owns_request(item) || self.is_addressed(item)
    }

    /// Returns whether the visitor sees the contents of an input request. Addressees see the
    /// request that they decide.
    pub(super) fn sees_request_contents(&self, item: &InboxItem) -> bool {
        !self.owners_only || self.owns_request(item) || self.is_addressed(item)
    }

    /// Returns the digest that an answer link was created for.
    pub(super) fn linked_digest(&self) -> Option<&str> {
        match &self.standing {
            Standing::Link(request) => Some(&request.digest),
            _ => None,
        }
    }

    /// Returns the scopes with which the visitor votes. The local user has every scope, and the
    /// link of a channel has the scope that it was created for.
    pub(super) fn scopes_for(&self, audience: &Audience) -> Vec<String> {
        let has_scope = match (&self.standing, &self.principal) {
            (Standing::Link(request), _) => request.is_label,
            (_, principal) => principal.as_ref().is_some_and(Principal::is_local),
        };
        let (_, scope) = audience.addressees();
        match scope.filter(|_| has_scope) {
            Some(scope) => vec![scope.to_owned()],
            None => self.scopes(),
        }
    }

    /// Returns the reader of the visitor's inbox; `None` if it is empty.
    pub(super) fn inbox_reader(&self) -> Option<InboxReader> {
        let reader = match (&self.standing, self.person()) {
            (Standing::Link(_), _) => return None,
            (_, Some(person)) => InboxReader::new(person, self.scopes()),
            (Standing::Store, None) => InboxReader::default(),
            (_, None) => return None,
        };
        let principal = self.only_principal().map(str::to_owned);
        Some(reader.all(self.sees_all()).principal(principal))
    }

    /// Returns the principal of a new task of the visitor: `key` with the visitor's person and
    /// scopes, and without the right to decide.
    pub(super) fn principal_for(&self, key: &str) -> Option<Principal> {
        let scopes = self.principal.as_ref().map_or(Scopes::NONE, |own| own.scopes().clone());
        let principal = Principal::from_key(key)?.with_scopes(scopes);
        Some(match self.person() {
            Some(person) => principal.with_person(person),
            None => principal,
        })
    }

    /// Returns an error for an MCP token. An agent reads of its tasks what the MCP endpoint shows:
    /// no journal, no audit log and no names of approvers.
    pub(super) fn require_person(&self) -> Result<(), PeopleError> {
        match self.standing {
            Standing::Plain => Err(PeopleError::Forbidden(
                "an MCP token cannot do this; sign in to the console, or use a deciding credential",
            )),
            _ => Ok(()),
        }
    }

    /// Returns an error unless the visitor is an operator.
    pub(super) fn require_operator(&self) -> Result<(), PeopleError> {
        match self.role {
            Role::Operator => Ok(()),
            Role::Person | Role::Viewer => {
                Err(PeopleError::Forbidden("only an operator may do this; ask one"))
            }
        }
    }

    /// Returns an error unless the visitor sees everything.
    pub(super) fn require_viewer(&self) -> Result<(), PeopleError> {
        match self.sees_all() {
            true => Ok(()),
            false => Err(PeopleError::Forbidden("only viewers and operators see this; ask one")),
        }
    }

    fn scopes(&self) -> Vec<String> {
        let scopes = self.principal.iter().flat_map(|principal| principal.scopes().iter());
        scopes.map(str::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use outlive_protocol::{Principal, Scopes};

    use super::{Channel, PeopleConfig, Role, Visitor};

    fn config() -> PeopleConfig {
        PeopleConfig {
            operators: vec!["ada".to_owned()],
            operator_scope: Some("ops".to_owned()),
            viewers: vec!["vic".to_owned()],
            viewer_scope: Some("audit".to_owned()),
            owners_only: false,
        }
    }

    #[test]
    fn role_needs_a_deciding_credential() {
        let scoped = |scope| Principal::named("bot").with_scopes(Scopes::of([scope]));
        for (principal, role) in [
            (Principal::named("ann"), Role::Person),
            (Principal::named("ada"), Role::Operator),
            (Principal::named("vic"), Role::Viewer),
            (scoped("ops"), Role::Operator),
            (scoped("audit"), Role::Viewer),
            (Principal::LOCAL, Role::Operator),
        ] {
            let plain = Visitor::new(&principal, &config(), Channel::Api);
            assert_eq!((plain.role(), plain.may_decide()), (Role::Person, false), "{principal}");
            let deciding = Visitor::new(&principal.clone().deciding(), &config(), Channel::Api);
            assert_eq!((deciding.role(), deciding.may_decide()), (role, true), "{principal}");
        }
        assert!(!Visitor::operator().may_decide());
    }

    #[test]
    fn anonymous_visitor_owns_no_task_of_anonymous_callers() {
        let key = Principal::ANONYMOUS.key();
        for principal in [Principal::ANONYMOUS, Principal::ANONYMOUS.deciding()] {
            let visitor = Visitor::new(&principal, &config(), Channel::Api);
            assert!(!visitor.owns(key, None) && !visitor.sees_all() && !visitor.may_decide());
            assert!(visitor.inbox_reader().is_none());
        }
    }

    #[test]
    fn mcp_token_owns_only_the_tasks_of_its_own_client() {
        let editor = Principal::named("iss|ann|editor").with_person("iss|ann");
        let plain = Visitor::new(&editor, &config(), Channel::Api);
        let session = Visitor::new(&editor.clone().deciding(), &config(), Channel::Console);
        for (principal, of_plain) in [("name:iss|ann|editor", true), ("name:iss|ann|chat", false)] {
            assert_eq!(plain.owns(principal, Some("iss|ann")), of_plain);
            assert!(session.owns(principal, Some("iss|ann")));
        }
        assert!(!session.owns("name:iss|ben|editor", Some("iss|ben")));
    }
}
