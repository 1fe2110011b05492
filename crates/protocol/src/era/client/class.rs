//! The capability class of a client: which input requests and displays it supports.

use std::{
    fmt,
    ops::{BitAnd, BitOr},
};

use outlive_wire::{
    ClientCapabilities, ElicitationCapability, JsonObject, RootsCapability, SamplingCapability,
};
use serde_json::json;

use crate::VersionRules;

/// MCP's extension for views of tools (MCP Apps).
const APPS_EXTENSION: &str = "io.modelcontextprotocol/ui";

/// Media type of a view, which a client of MCP Apps declares.
const APPS_MEDIA_TYPE: &str = "text/html;profile=mcp-app";

/// The input requests and displays that a client supports, as six bits.
///
/// ```
/// use outlive_protocol::era::client::CapabilityClass;
///
/// let class = CapabilityClass::from_json(r#"{"elicitation": {}, "roots": {}}"#);
/// assert_eq!(class, CapabilityClass::FORM | CapabilityClass::ROOTS);
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CapabilityClass(u8);

impl CapabilityClass {
    /// No input requests and no displays.
    pub const NONE: Self = Self(0);
    /// Form elicitation.
    pub const FORM: Self = Self(1);
    /// URL elicitation.
    pub const URL: Self = Self(1 << 1);
    /// Sampling from a model.
    pub const SAMPLING: Self = Self(1 << 2);
    /// Sampling from a model that may use tools. Includes [`CapabilityClass::SAMPLING`].
    pub const SAMPLING_TOOLS: Self = Self((1 << 3) | (1 << 2));
    /// Roots.
    pub const ROOTS: Self = Self(1 << 4);
    /// Views of tools (MCP Apps).
    pub const APPS: Self = Self(1 << 5);
    /// All capabilities.
    pub const ALL: Self = Self((1 << 6) - 1);

    /// Returns whether this class has everything of another one.
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns the six bits.
    pub fn bits(self) -> u8 {
        self.0
    }

    /// Returns the class with these bits, or `None` if another bit is set.
    pub fn from_bits(bits: u8) -> Option<Self> {
        (bits <= Self::ALL.0).then_some(Self(bits))
    }

    /// Returns the class of a client with these capabilities.
    pub fn from_capabilities(declared: &ClientCapabilities) -> Self {
        let mut class = Self::NONE;
        if let Some(elicitation) = &declared.elicitation {
            // A client that names neither kind supports forms.
            if elicitation.form.is_some() || elicitation.url.is_none() {
                class = class | Self::FORM;
            }
            if elicitation.url.is_some() {
                class = class | Self::URL;
            }
        }
        if let Some(sampling) = &declared.sampling {
            class = class | Self::SAMPLING;
            if sampling.tools.is_some() {
                class = class | Self::SAMPLING_TOOLS;
            }
        }
        if declared.roots.is_some() {
            class = class | Self::ROOTS;
        }
        if declared.extensions.as_ref().is_some_and(shows_apps) {
            class = class | Self::APPS;
        }
        class
    }

    /// Returns the class of a client, from the JSON text of its capabilities. Invalid text declares
    /// nothing.
    pub fn from_json(text: &str) -> Self {
        serde_json::from_str(text)
            .map(|declared| Self::from_capabilities(&declared))
            .unwrap_or_default()
    }

    /// Returns the part of the class that a protocol version has.
    #[must_use]
    pub fn within(self, rules: &VersionRules) -> Self {
        let mut class = Self::SAMPLING | Self::ROOTS | Self::APPS;
        if rules.inputs.forms {
            class = class | Self::FORM;
        }
        if rules.inputs.urls {
            class = class | Self::URL;
        }
        if rules.inputs.sampling_tools {
            class = class | Self::SAMPLING_TOOLS;
        }
        self & class
    }

    /// Replaces the input requests and displays in capabilities by those of the class.
    pub fn apply(self, declared: &mut ClientCapabilities) {
        let yes = |part: Self| self.contains(part).then(JsonObject::new);
        declared.roots = self.contains(Self::ROOTS).then(RootsCapability::default);
        declared.sampling = self
            .contains(Self::SAMPLING)
            .then(|| SamplingCapability { context: None, tools: yes(Self::SAMPLING_TOOLS) });
        let (form, url) = (yes(Self::FORM), yes(Self::URL));
        declared.elicitation =
            (form.is_some() || url.is_some()).then_some(ElicitationCapability { form, url });
        let mut extensions = declared.extensions.take().unwrap_or_default();
        extensions.remove(APPS_EXTENSION);
        if self.contains(Self::APPS) {
            let settings = json!({"mimeTypes": [APPS_MEDIA_TYPE]});
            extensions.insert(APPS_EXTENSION.to_owned(), settings);
        }
        declared.extensions = (!extensions.is_empty()).then_some(extensions);
    }
}

/// Returns whether a client declares that it shows views of tools.
fn shows_apps(extensions: &JsonObject) -> bool {
    let settings = extensions.get(APPS_EXTENSION);
    let types = settings.and_then(|settings| settings.get("mimeTypes")?.as_array());
    types.is_some_and(|types| types.iter().any(|it| it == APPS_MEDIA_TYPE))
}

impl BitOr for CapabilityClass {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitAnd for CapabilityClass {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

impl fmt::Debug for CapabilityClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [
            (Self::FORM, "form"),
            (Self::URL, "url"),
            (Self::SAMPLING, "sampling"),
            (Self::SAMPLING_TOOLS, "sampling-tools"),
            (Self::ROOTS, "roots"),
            (Self::APPS, "apps"),
        ];
        let held = names.iter().filter(|(part, _)| self.contains(*part)).map(|(_, name)| name);
        f.debug_set().entries(held).finish()
    }
}

#[cfg(test)]
mod tests {
    use outlive_wire::{ClientCapabilities, Version};

    use super::CapabilityClass;
    use crate::VersionRules;

    #[test]
    fn every_class_survives_its_capabilities() {
        for bits in 0..64 {
            let Some(class) = CapabilityClass::from_bits(bits) else { panic!("{bits}") };
            let mut declared = ClientCapabilities::default();
            class.apply(&mut declared);
            let tools_without_sampling = bits & 0b1100 == 0b1000;
            let read = CapabilityClass::from_capabilities(&declared);
            assert_eq!(read == class, !tools_without_sampling, "{class:?} {read:?}");
            // A class that is applied again replaces the first.
            CapabilityClass::NONE.apply(&mut declared);
            assert_eq!(declared, ClientCapabilities::default());
        }
        assert_eq!(CapabilityClass::from_bits(64), None);
    }

    #[test]
    fn class_within_version_lacks_newer_input_requests() {
        let within = |version: Version| {
            let rules = VersionRules::find(version.as_str()).unwrap();
            CapabilityClass::ALL.within(rules)
        };
        let oldest = CapabilityClass::SAMPLING | CapabilityClass::ROOTS | CapabilityClass::APPS;
        assert_eq!(within(Version::V2024_11_05), oldest);
        assert_eq!(within(Version::V2025_06_18), oldest | CapabilityClass::FORM);
        assert_eq!(within(Version::V2025_11_25), CapabilityClass::ALL);
    }

    #[test]
    fn invalid_capabilities_declare_nothing() {
        assert_eq!(CapabilityClass::from_json("[]"), CapabilityClass::NONE);
        let bare = r#"{"extensions": {"io.modelcontextprotocol/ui": {}}}"#;
        assert_eq!(CapabilityClass::from_json(bare), CapabilityClass::NONE);
    }
}
