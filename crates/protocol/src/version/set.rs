//! A set of protocol versions.

use outlive_wire::Version;

use super::{Era, VERSIONS, VersionRules};

/// A set of protocol versions.
#[derive(Clone, Debug)]
pub struct VersionSet {
    /// Newest first.
    versions: Vec<&'static VersionRules>,
    newest_modern: Option<&'static VersionRules>,
    newest_legacy: Option<&'static VersionRules>,
}

impl VersionSet {
    /// Returns a set of all versions.
    pub fn all() -> Self {
        Self::from_rules(VERSIONS)
    }

    /// Returns the versions without a handshake: 2026-07-28.
    pub fn modern() -> Self {
        Self::from_rules(VERSIONS.into_iter().filter(|rules| rules.era == Era::Modern))
    }

    /// Returns the versions with a handshake: 2024-11-05 to 2025-11-25.
    pub fn legacy() -> Self {
        Self::from_rules(VERSIONS.into_iter().filter(|rules| rules.era == Era::Legacy))
    }

    /// Returns whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.versions.is_empty()
    }

    /// Returns whether the rules of any version in the set fulfill a condition.
    pub fn any(&self, fulfills: impl Fn(&VersionRules) -> bool) -> bool {
        self.versions.iter().any(|rules| fulfills(rules))
    }

    pub(crate) fn from_rules(rules: impl IntoIterator<Item = &'static VersionRules>) -> Self {
        let mut versions: Vec<_> = rules.into_iter().collect();
        versions.sort_by_key(|rules| std::cmp::Reverse(rules.version));
        let newest = |era| versions.iter().copied().find(|rules| rules.era == era);
        let (newest_modern, newest_legacy) = (newest(Era::Modern), newest(Era::Legacy));
        Self { versions, newest_modern, newest_legacy }
    }

    /// Returns the newest version of an era.
    pub(crate) fn newest(&self, era: Era) -> Option<&'static VersionRules> {
        match era {
            Era::Modern => self.newest_modern,
            Era::Legacy => self.newest_legacy,
        }
    }

    /// Returns the versions of an era, newest first.
    pub(crate) fn in_era(&self, era: Era) -> impl Iterator<Item = &'static VersionRules> {
        self.versions.iter().copied().filter(move |rules| rules.era == era)
    }

    /// Returns the version of an era with this date.
    pub(crate) fn find(&self, era: Era, date: &str) -> Option<&'static VersionRules> {
        self.in_era(era).find(|rules| rules.version.as_str() == date)
    }
}

impl Default for VersionSet {
    fn default() -> Self {
        Self::all()
    }
}

/// Collects versions. Ignores versions that this crate does not know.
impl FromIterator<Version> for VersionSet {
    fn from_iter<I: IntoIterator<Item = Version>>(versions: I) -> Self {
        let find = |version: Version| VersionRules::find(version.as_str());
        Self::from_rules(versions.into_iter().filter_map(find))
    }
}
