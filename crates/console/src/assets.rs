//! Script, style and icons of the pages.
//!
//! They are embedded in the program. Their path contains a hash of their bytes, so browsers cache
//! them without asking again.

use std::sync::LazyLock;

use sha2::{Digest as _, Sha256};

/// The style of all pages. The answer page contains it, so it needs no other resource.
pub(crate) const CSS: &str = include_str!("../assets/console.css");

/// The symbols of all pages. Each page contains them, because browsers disagree about the policy for
/// symbols of another file.
pub(crate) const ICONS: &str = include_str!("../assets/icons.svg");

/// A file that pages refer to.
#[derive(Debug)]
pub(crate) struct Asset {
    pub(crate) name: &'static str,
    pub(crate) media_type: &'static str,
    pub(crate) body: &'static str,
}

/// All files.
pub(crate) const ALL: [Asset; 3] = [
    Asset { name: "console.css", media_type: "text/css; charset=utf-8", body: CSS },
    Asset {
        name: "console.js",
        media_type: "text/javascript; charset=utf-8",
        body: include_str!("../assets/console.js"),
    },
    Asset { name: "icons.svg", media_type: "image/svg+xml", body: ICONS },
];

/// Folder of the files: a hash of all of them.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    let mut hash = Sha256::new();
    for asset in &ALL {
        hash.update(asset.body);
    }
    hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
});

/// Returns the path of a file below the folder of the console.
pub(crate) fn path(name: &str) -> String {
    format!("assets/{}/{name}", *VERSION)
}

/// Returns the file at a path below the folder of the console.
pub(crate) fn find(path: &str) -> Option<&'static Asset> {
    let name = path.strip_prefix("assets/")?.strip_prefix(VERSION.as_str())?.strip_prefix('/')?;
    ALL.iter().find(|asset| asset.name == name)
}

#[cfg(test)]
mod tests {
    use super::{ALL, CSS, find, path};

    #[test]
    fn file_is_found_at_its_path_only() {
        for asset in &ALL {
            assert_eq!(find(&path(asset.name)).map(|it| it.name), Some(asset.name));
        }
        for other in ["assets/console.css", "assets/0/console.css", "console.css", ""] {
            assert!(find(other).is_none(), "{other}");
        }
        assert!(find(&path("../console.css")).is_none());
    }

    #[test]
    fn files_are_small() {
        for (asset, most) in ALL.iter().zip([16, 14, 8]) {
            assert!(asset.body.len() <= most << 10, "{}: {}", asset.name, asset.body.len());
        }
    }

    #[test]
    fn files_refer_to_no_other_file() {
        for asset in &ALL {
            for reference in ["url(http", "@import", "//cdn", "innerHTML", "eval(", "data:"] {
                assert!(!asset.body.contains(reference), "{}: {reference}", asset.name);
            }
        }
        assert!(!CSS.contains('<'), "the answer page contains the style");
    }
}
