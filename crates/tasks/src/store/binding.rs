//! Calls and definitions that approvals cover.

use serde::{Deserialize, Serialize};

use crate::setters::setters;

/// The call and the definition that an approval covers. A decision counts only for this digest, and
/// a run starts only under this definition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Binding {
    /// Digest of server, tool and canonical arguments.
    pub digest: String,
    /// Hash of the tool's definition.
    pub definition: String,
    /// Number of approvals by different persons that settle the request.
    pub count: u32,
    /// Key of the calls that a denial of this one denies; `None` if a denial denies no other call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub denial: Option<String>,
}

impl Binding {
    /// Creates a binding that one approval settles.
    pub fn new(digest: impl Into<String>, definition: impl Into<String>) -> Self {
        Self { digest: digest.into(), definition: definition.into(), count: 1, denial: None }
    }
}

setters!(Binding { count: u32, denial: Option<String> });
