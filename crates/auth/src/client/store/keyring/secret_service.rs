//! The Secret Service of Linux desktops: GNOME Keyring, KWallet, KeePassXC.
//!
//! Secrets cross the session's bus as they are: it is a socket of this user, and whoever can listen
//! on it can ask the service as well.
//! Spec: <https://specifications.freedesktop.org/secret-service/latest/>

use super::{
    dbus::{Bus, NoAnswer, Reader, Target},
    error::KeyringError,
};

pub(in crate::client::store) const NAME: &str = "the Secret Service";

const LABEL: &str = "Outlive: the key that credentials are sealed with";

pub(in crate::client::store) fn get(name: &str) -> Result<Option<Vec<u8>>, KeyringError> {
    let mut service = Service::open()?;
    match service.find(name)? {
        Some(item) => Ok(Some(service.secret(&item)?)),
        None => Ok(None),
    }
}

pub(in crate::client::store) fn put(name: &str, secret: &[u8]) -> Result<(), KeyringError> {
    Service::open()?.create(name, secret)
}

/// The service, in a session.
struct Service {
    bus: Bus,
    session: String,
}

impl Service {
    fn open() -> Result<Self, KeyringError> {
        let mut bus = Bus::session().map_err(|error| keyring_error(&error))?;
        let opened = bus.call(SERVICE, "OpenSession", "sv", |arguments| {
            arguments.text("plain");
            arguments.signature("s");
            arguments.text("");
        });
        let session = opened.and_then(|mut opened| {
            if opened.signature()? == "s" {
                opened.text()?;
            }
            opened.text()
        });
        Ok(Self { bus, session: session.map_err(|error| keyring_error(&error))? })
    }

    /// The item that has the secret of this name.
    fn find(&mut self, name: &str) -> Result<Option<String>, KeyringError> {
        let found = self.bus.call(SERVICE, "SearchItems", "a{ss}", |arguments| {
            arguments.map(&attributes(name));
        });
        let both = found.and_then(|mut found| Ok((found.texts()?, found.texts()?)));
        let (open, locked) = both.map_err(|error| keyring_error(&error))?;
        match (open.into_iter().next(), locked.into_iter().next()) {
            (Some(item), _) => Ok(Some(item)),
            // It may be that nobody has to be asked for it.
            (None, Some(item)) => self.unlock(&item).map(|()| Some(item)),
            (None, None) => Ok(None),
        }
    }

    fn secret(&mut self, at: &str) -> Result<Vec<u8>, KeyringError> {
        let session = self.session.clone();
        let got = self.bus.call(item(at), "GetSecret", "o", |arguments| {
            arguments.text(&session);
        });
        let secret = got.and_then(|mut got| {
            got.align(8)?;
            let (_session, _parameters) = (got.text()?, got.bytes()?);
            got.bytes()
        });
        secret.map_err(|error| keyring_error(&error))
    }

    /// Keeps a secret in the user's default collection.
    fn create(&mut self, name: &str, secret: &[u8]) -> Result<(), KeyringError> {
        let alias = self.bus.call(SERVICE, "ReadAlias", "s", |arguments| {
            arguments.text("default");
        });
        let collection = text(alias)?;
        if collection == "/" {
            return Err(KeyringError::Absent);
        }
        self.unlock(&collection)?;
        let session = self.session.clone();
        let to = at(&collection, "org.freedesktop.Secret.Collection");
        let made = self.bus.call(to, "CreateItem", "a{sv}(oayays)b", |arguments| {
            arguments.array(8, |properties| {
                properties.align(8);
                properties.text("org.freedesktop.Secret.Item.Label");
                properties.signature("s");
                properties.text(LABEL);
                properties.align(8);
                properties.text("org.freedesktop.Secret.Item.Attributes");
                properties.signature("a{ss}");
                properties.map(&attributes(name));
            });
            arguments.align(8);
            arguments.text(&session);
            arguments.bytes(&[]);
            arguments.bytes(secret);
            arguments.text("application/octet-stream");
            // In place of the one with these attributes.
            arguments.flag(true);
        });
        let both = made.and_then(|mut made| Ok((made.text()?, made.text()?)));
        let (item, _prompt) = both.map_err(|error| keyring_error(&error))?;
        if item == "/" { Err(KeyringError::Locked) } else { Ok(()) }
    }

    /// Opens what can be opened without asking anybody.
    fn unlock(&mut self, object: &str) -> Result<(), KeyringError> {
        let tried = self.bus.call(SERVICE, "Unlock", "ao", |arguments| {
            arguments.array(4, |objects| objects.text(object));
        });
        let both = tried.and_then(|mut tried| Ok((tried.texts()?, tried.text()?)));
        let (_opened, prompt) = both.map_err(|error| keyring_error(&error))?;
        if prompt == "/" { Ok(()) } else { Err(KeyringError::Locked) }
    }
}

fn text(answer: Result<Reader, NoAnswer>) -> Result<String, KeyringError> {
    answer.and_then(|mut answer| answer.text()).map_err(|error| keyring_error(&error))
}

/// The service itself.
const SERVICE: Target<'static> = at("/org/freedesktop/secrets", "org.freedesktop.Secret.Service");

const fn item(path: &str) -> Target<'_> {
    at(path, "org.freedesktop.Secret.Item")
}

const fn at<'a>(path: &'a str, interface: &'a str) -> Target<'a> {
    Target { destination: "org.freedesktop.secrets", path, interface }
}

/// By what the item is found again.
fn attributes(name: &str) -> [(&str, &str); 2] {
    [("xdg:schema", "dev.outlive.Credentials"), ("service", name)]
}

fn keyring_error(error: &NoAnswer) -> KeyringError {
    match error {
        NoAnswer::NoBus => KeyringError::Absent,
        NoAnswer::Refused(name) if name == "org.freedesktop.Secret.Error.IsLocked" => {
            KeyringError::Locked
        }
        // Nobody on the bus is one, and nobody can be started to be one.
        NoAnswer::Refused(name)
            if name.starts_with("org.freedesktop.DBus.Error.Spawn.")
                || name == "org.freedesktop.DBus.Error.ServiceUnknown"
                || name == "org.freedesktop.DBus.Error.NameHasNoOwner" =>
        {
            KeyringError::Absent
        }
        error => KeyringError::Failed(error.to_string()),
    }
}
