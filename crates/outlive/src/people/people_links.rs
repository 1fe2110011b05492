//! Answer links for people: the holder of a link votes once, on one input request.
//!
//! A token covers task, input request, digest, holder, expiry and a random ID. It permits the vote of
//! its holder and nothing else, and ends when the request settles.

use std::time::Duration;

use outlive_protocol::Seal;
use outlive_tasks::store::{InboxItem, TaskId, UnixMillis};

use super::{
    error::PeopleError,
    inputs::{digest, link_digest},
    roles::{LinkedRequest, Role, Visitor},
    state::{People, event},
};

/// Longest lifetime of a link.
const MAX_TTL: Duration = Duration::from_secs(86_400);

/// Maximum number of characters of a token.
const MAX_TOKEN: usize = 400;

/// Prefix of a holder that is a channel and not a person.
const LABEL: &str = "link:";

/// An opened answer link.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PersonLink {
    /// Visitor with the rights of the link: it sees and answers this input request only.
    pub visitor: Visitor,
    /// Task of the input request.
    pub task: TaskId,
    /// Wire key of the input request.
    pub name: String,
}

impl People {
    /// Creates an answer link for one person, who then needs no other credential to vote. Returns
    /// its address. The link ends after `expires`, after a day, or when the request settles.
    ///
    /// An addressee creates links for itself. An operator creates links for the people of the
    /// request, and for a request to a scope also for a channel, which votes as `link:TO`. The
    /// caller of the task creates none.
    ///
    /// # Errors
    ///
    /// [`NotFound`](PeopleError::NotFound) like [`input_request`](Self::input_request);
    /// [`Forbidden`](PeopleError::Forbidden) if the tool does not allow links or the visitor may
    /// not create this one; [`Invalid`](PeopleError::Invalid) if `to` is not in the audience.
    pub async fn link(
        &self,
        visitor: &Visitor,
        task: &TaskId,
        name: &str,
        to: Option<&str>,
        expires: Option<Duration>,
    ) -> Result<String, PeopleError> {
        let detail = self.find_request(visitor, task, name).await?;
        let item = &detail.item;
        self.may_link(visitor, item)?;
        if !self.is_open(item) {
            return Err(PeopleError::Forbidden("the request no longer waits for a decision"));
        }
        let holder = holder(visitor, item, to)?;
        let url = self.link_for(item, &holder, expires.unwrap_or(MAX_TTL)).ok_or_else(|| {
            PeopleError::field("to", "is too long for an answer link; use the console")
        })?;
        let by = visitor.person().unwrap_or("an operator");
        let reason = format!("for {holder}, by {by}, {}", visitor.channel().as_str());
        let created = event(visitor, &item.principal, task, "link-created", Some(reason));
        self.record(vec![created]).await?;
        Ok(url)
    }

    /// Opens the token of an answer link for people.
    ///
    /// # Errors
    ///
    /// [`NotFound`](PeopleError::NotFound) for an unknown, changed, expired or foreign token, and if
    /// the tool does not allow links. The reasons are indistinguishable.
    pub async fn open_link(&self, token: &str) -> Result<PersonLink, PeopleError> {
        let token = Token::open(self.seal(), token).ok_or(PeopleError::NotFound)?;
        let Token { task, name, digest, holder, is_label, expires_at } = token;
        let request = LinkedRequest { task, name, digest, is_label };
        let (task, name) = (request.task.clone(), request.name.clone());
        let visitor = Visitor::link(holder, request);
        let detail = self.find_request(&visitor, &task, &name).await?;
        let allows = self.tool(&detail.item.tool).is_some_and(|tool| tool.allows_links);
        match allows && self.now() < expires_at {
            true => Ok(PersonLink { visitor, task, name }),
            false => Err(PeopleError::NotFound),
        }
    }

    /// Returns answer links for all people of an input request of the store, with their holders, for
    /// messages to `target`. A request to a scope has one link, which votes as `link:TARGET`. Empty if the tool
    /// does not allow links.
    pub fn links_for(&self, item: &InboxItem, target: &str) -> Vec<(String, String)> {
        let allows = self.tool(&item.tool).is_some_and(|tool| tool.allows_links);
        if !allows || !self.is_open(item) {
            return Vec::new();
        }
        let (names, scope) = item.audience.addressees();
        let others = names.iter().filter(|name| Some(*name) != item.person.as_ref()).cloned();
        let label = scope.map(|_| format!("{LABEL}{target}"));
        let links = others.chain(label).filter_map(|holder| {
            let url = self.link_for(item, &holder, MAX_TTL)?;
            Some((holder, url))
        });
        links.collect()
    }

    /// Returns an error unless the visitor may create answer links for an input request.
    pub(super) fn may_link(&self, visitor: &Visitor, item: &InboxItem) -> Result<(), PeopleError> {
        let forbidden = |reason| Err(PeopleError::Forbidden(reason));
        self.server()?;
        if !item.audience.is_people() {
            return forbidden("answer links are for requests to named people or to a scope");
        }
        if !self.tool(&item.tool).is_some_and(|tool| tool.allows_links) {
            return forbidden(
                "this tool does not allow answer links; set `links` in its `approve`",
            );
        }
        if !visitor.may_decide() || visitor.linked_digest().is_some() {
            return forbidden("only people who are signed in create answer links");
        }
        if visitor.person() == item.person.as_deref() {
            return forbidden("the caller creates no answer link for its own request");
        }
        match visitor.role() == Role::Operator || visitor.is_addressed(item) {
            true => Ok(()),
            false => forbidden("only operators and the people of the request create answer links"),
        }
    }

    /// Returns the address of a link. Returns `None` if the token is too long, or if the operating
    /// system provides no random bytes.
    fn link_for(&self, item: &InboxItem, holder: &str, ttl: Duration) -> Option<String> {
        let ttl = u64::try_from(ttl.min(MAX_TTL).as_millis()).unwrap_or(u64::MAX);
        let end = self.now().saturating_add(ttl);
        let token = Token {
            task: item.task.clone(),
            name: item.name.clone(),
            digest: link_digest(&digest(item)),
            is_label: holder.starts_with(LABEL) && !item.audience.contains(holder, &[]),
            holder: holder.to_owned(),
            expires_at: item.due.map_or(end, |due| due.min(end)),
        };
        let token = token.seal(self.seal())?;
        let env = self.env()?;
        let hosts = env.tasks.as_ref()?.config.hosts.as_ref();
        let base = env.address.url.as_deref().or_else(|| hosts.and_then(|hosts| hosts.page_url()));
        Some(format!("{}/answer/{token}", base.unwrap_or_default()))
    }
}

/// Returns the person or channel that a new link belongs to.
fn holder(visitor: &Visitor, item: &InboxItem, to: Option<&str>) -> Result<String, PeopleError> {
    let own = visitor.person().filter(|_| visitor.is_addressed(item));
    let (names, scope) = item.audience.addressees();
    let is_named = |to: &str| names.iter().any(|name| name == to);
    match (to, own) {
        (None, Some(own)) => Ok(own.to_owned()),
        (Some(to), Some(own)) if to == own => Ok(own.to_owned()),
        (None, None) => Err(PeopleError::field("to", "is required")),
        (Some(_), _) if visitor.role() != Role::Operator => {
            Err(PeopleError::Forbidden("only operators create answer links for others"))
        }
        (Some(to), _) if item.person.as_deref() == Some(to) => {
            Err(PeopleError::field("to", "is the caller, whose vote does not count"))
        }
        (Some(to), _) if is_named(to) => Ok(to.to_owned()),
        (Some(to), _) if scope.is_some() => Ok(format!("{LABEL}{to}")),
        (Some(_), _) => Err(PeopleError::field("to", "is not one of the people of this request")),
    }
}

/// Content of a token.
#[derive(Debug, PartialEq, Eq)]
struct Token {
    task: TaskId,
    name: String,
    digest: String,
    holder: String,
    is_label: bool,
    expires_at: UnixMillis,
}

/// Number of bytes of the random ID, which makes two links for the same holder different.
const ID: usize = 8;

/// Context that tokens are sealed with. The second part separates them from links to clients.
const CONTEXT: [&str; 2] = [Seal::ANSWER_LINK, "people"];

impl Token {
    /// Seals the token. Returns `None` if it is too long.
    fn seal(&self, seal: &Seal) -> Option<String> {
        let Self { task, name, digest, holder, is_label, expires_at } = self;
        let mut id = [0; ID];
        getrandom::fill(&mut id).ok()?;
        let mut content = vec![u8::from(*is_label)];
        content.extend(expires_at.to_le_bytes());
        content.extend(id);
        for part in [digest.as_str(), task.as_str(), name, holder] {
            content.push(u8::try_from(part.len()).ok()?);
            content.extend(part.as_bytes());
        }
        seal.seal(&content, &CONTEXT).filter(|token| token.len() <= MAX_TOKEN)
    }

    fn open(seal: &Seal, token: &str) -> Option<Self> {
        if token.len() > MAX_TOKEN {
            return None;
        }
        let content = seal.open(token, &CONTEXT)?;
        let (is_label, rest) = content.split_first()?;
        let (expires_at, rest) = rest.split_first_chunk::<8>()?;
        let (_, mut rest) = rest.split_first_chunk::<ID>()?;
        let mut part = || {
            let (length, after) = rest.split_first()?;
            let (text, after) = after.split_at_checked(usize::from(*length))?;
            rest = after;
            String::from_utf8(text.to_vec()).ok()
        };
        let (digest, task, name, holder) = (part()?, part()?, part()?, part()?);
        Some(Self {
            task: TaskId::new(task),
            name,
            digest,
            holder,
            is_label: *is_label == 1,
            expires_at: u64::from_le_bytes(*expires_at),
        })
    }
}

#[cfg(test)]
mod tests {
    use outlive_protocol::Seal;
    use outlive_tasks::store::TaskId;

    use super::{MAX_TOKEN, Token};
    use crate::people::inputs::link_digest;

    fn token(holder: String) -> Token {
        Token {
            task: TaskId::new("0123456789abcdef0123456789abcdef"),
            name: "#approval#2".to_owned(),
            digest: link_digest("4ade91c2"),
            holder,
            is_label: false,
            expires_at: 1_780_000_000_000,
        }
    }

    #[test]
    fn token_of_usual_name_is_short_and_opens() {
        let seal = Seal::new([7; 32]);
        let person =
            format!("https://login.example.com/tenant-{}|{}", "x".repeat(36), "y".repeat(36));
        let token = token(person);
        let sealed = token.seal(&seal).unwrap();
        assert!(sealed.len() <= MAX_TOKEN, "{}", sealed.len());
        assert_ne!(Some(&sealed), token.seal(&seal).as_ref(), "each link has its own ID");
        assert_eq!(Token::open(&seal, &sealed), Some(token));
    }

    #[test]
    fn token_with_very_long_name_is_rejected() {
        assert_eq!(token("x".repeat(250)).seal(&Seal::new([7; 32])), None);
    }

    #[test]
    fn changed_or_foreign_token_does_not_open() {
        let seal = Seal::new([7; 32]);
        let sealed = token("ada".to_owned()).seal(&seal).unwrap();
        assert_eq!(Token::open(&Seal::new([8; 32]), &sealed), None);
        for at in 0..sealed.len() {
            let mut bytes = sealed.clone().into_bytes();
            bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(bytes).unwrap();
            assert_ne!(Token::open(&seal, &changed), Some(token("ada".to_owned())), "{at}");
        }
        let of_client = seal.seal(b"{}", &[Seal::ANSWER_LINK]).unwrap();
        assert_eq!(Token::open(&seal, &of_client), None);
    }
}
