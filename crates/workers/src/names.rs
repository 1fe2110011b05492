//! Names of tools, and the tool workers that have them.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Names of the tools of one server, with their owners: two tool workers must not replace each other's
/// tools. Clones share the names.
#[derive(Clone, Default)]
pub struct ToolNames(Arc<Mutex<HashMap<String, Arc<str>>>>);

impl ToolNames {
    /// Creates an empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Claims a name. Returns the other owner if the name is taken.
    ///
    /// # Errors
    ///
    /// Returns the other owner if the name is taken.
    pub fn claim(&self, name: &str, owner: &str) -> Result<(), Arc<str>> {
        let mut names = self.lock();
        match names.get(name) {
            Some(other) if **other != *owner => Err(Arc::clone(other)),
            Some(_) => Ok(()),
            None => {
                names.insert(name.to_owned(), owner.into());
                Ok(())
            }
        }
    }

    /// Releases a name of this owner.
    pub fn release(&self, name: &str, owner: &str) {
        let mut names = self.lock();
        if names.get(name).is_some_and(|other| **other == *owner) {
            names.remove(name);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<str>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for ToolNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ToolNames").field(&self.lock().len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::ToolNames;

    #[test]
    fn name_has_one_owner_until_it_is_released() {
        let names = ToolNames::new();
        names.claim("deploy", "shop").unwrap();
        names.claim("deploy", "shop").unwrap();
        assert_eq!(&*names.claim("deploy", "films").unwrap_err(), "shop");
        names.release("deploy", "films");
        assert!(names.claim("deploy", "films").is_err());
        names.release("deploy", "shop");
        names.claim("deploy", "films").unwrap();
    }
}
