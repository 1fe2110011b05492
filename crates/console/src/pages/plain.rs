//! The frame of a page without a visitor: no navigation and no script.

use super::context::Theme;
use crate::assets;

/// The address and the colors of a page without a visitor.
#[derive(Clone, Debug)]
pub(crate) struct Plain<'a> {
    /// Relative path from the page to the folder of the console. It ends with a slash, as in `./`.
    pub(crate) base: &'a str,
    pub(crate) theme: Theme,
}

impl Plain<'_> {
    pub(crate) fn asset(&self, name: &str) -> String {
        format!("{}{}", self.base, assets::path(name))
    }

    pub(crate) fn theme(&self) -> &'static str {
        self.theme.as_str()
    }
}
