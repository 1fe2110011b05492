//! Globs over the names of tools and prompts.

/// Maximum number of `*` in a glob, which bounds the time of a match.
const MAX_STARS: usize = 8;

/// A glob: `*` stands for any characters, `?` for one.
#[derive(Clone, Debug)]
pub(crate) struct Glob(Vec<char>);

/// The names that an upstream shows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filter {
    only: Vec<Glob>,
    hide: Vec<Glob>,
}

impl Glob {
    /// Returns `None` if the glob has too many `*`.
    pub(crate) fn new(glob: &str) -> Option<Self> {
        let stars = glob.chars().filter(|char| *char == '*').count();
        (stars <= MAX_STARS).then(|| Self(glob.chars().collect()))
    }

    pub(crate) fn matches(&self, name: &str) -> bool {
        let name: Vec<char> = name.chars().collect();
        let (mut at, mut place) = (0, 0);
        // Position after the last `*`, and the place in the name that it was tried at.
        let mut star = None;
        while place < name.len() {
            match self.0.get(at) {
                Some('*') => {
                    star = Some((at + 1, place));
                    at += 1;
                }
                Some(char) if *char == '?' || *char == name[place] => {
                    at += 1;
                    place += 1;
                }
                _ => match star {
                    Some((after, tried)) => {
                        at = after;
                        place = tried + 1;
                        star = Some((after, tried + 1));
                    }
                    None => return false,
                },
            }
        }
        self.0[at..].iter().all(|char| *char == '*')
    }
}

impl Filter {
    /// Creates a filter. Invalid globs match nothing; the check of the settings refuses them.
    pub(crate) fn new(only: &[String], hide: &[String]) -> Self {
        let globs = |texts: &[String]| texts.iter().filter_map(|text| Glob::new(text)).collect();
        Self { only: globs(only), hide: globs(hide) }
    }

    pub(crate) fn shows(&self, name: &str) -> bool {
        let any = |globs: &[Glob]| globs.iter().any(|glob| glob.matches(name));
        (self.only.is_empty() || any(&self.only)) && !any(&self.hide)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_match_whole_names() {
        let matches = |glob: &str, name: &str| Glob::new(glob).unwrap().matches(name);
        for (glob, name) in [
            ("read_*", "read_"),
            ("read_*", "read_file"),
            ("*_file", "read_file"),
            ("r?ad", "read"),
        ] {
            assert!(matches(glob, name), "{glob} {name}");
        }
        for (glob, name) in [("read_*", "bread_"), ("read", "reads"), ("?", ""), ("a*b", "abc")] {
            assert!(!matches(glob, name), "{glob} {name}");
        }
        assert!(matches("*a*b*", "xxaxxbxx"));
        assert!(matches("ü*", "über"));
    }

    #[test]
    fn glob_with_too_many_stars_is_invalid() {
        assert!(Glob::new("*********").is_none());
    }

    #[test]
    fn hidden_names_win_over_shown_ones() {
        let globs =
            |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let filter = Filter::new(&globs(&["read_*", "list_*"]), &globs(&["*_secret"]));
        assert!(filter.shows("read_file"));
        assert!(!filter.shows("read_secret"));
        assert!(!filter.shows("write_file"));
        assert!(Filter::default().shows("anything"));
    }
}
