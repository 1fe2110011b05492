//! The declared entry of a tool, and `hello`.

use std::collections::{BTreeMap, HashSet};

use outlive::wire::RawJson;
use serde::Deserialize;
use serde_json::value::RawValue;

/// The version of the protocol that this server speaks.
pub(crate) const PROTOCOL: u32 = 1;

/// Maximum number of tools of a tool worker.
const MAX_TOOLS: usize = 1_000;

/// First message of a tool worker.
#[derive(Clone, Debug)]
pub(crate) struct Hello {
    /// Name and version of the implementation.
    pub(crate) sdk: String,
    /// Name of the application.
    pub(crate) name: Option<String>,
    pub(crate) tools: Vec<DeclaredTool>,
}

/// A tool as its tool worker declares it.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct DeclaredTool {
    pub(crate) name: String,
    pub(crate) title: Option<String>,
    pub(crate) description: Option<String>,
    #[serde(rename = "inputSchema")]
    pub(crate) input_schema: Option<RawJson>,
    #[serde(rename = "outputSchema")]
    pub(crate) output_schema: Option<RawJson>,
    #[serde(default)]
    pub(crate) durable: bool,
    #[serde(default)]
    pub(crate) has_cleanup: bool,
    pub(crate) task: Option<DeclaredTask>,
    pub(crate) task_after_ms: Option<u64>,
    pub(crate) timeout_ms: Option<u64>,
    pub(crate) read_only: Option<bool>,
    pub(crate) destructive: Option<bool>,
    pub(crate) idempotent: Option<bool>,
    pub(crate) open_world: Option<bool>,
    #[serde(default)]
    pub(crate) scopes: Vec<String>,
    pub(crate) on_crash: Option<DeclaredOnCrash>,
    #[serde(default)]
    pub(crate) streams_content: bool,
    pub(crate) handler_revision: Option<String>,
    #[serde(default)]
    pub(crate) migrates: bool,
    pub(crate) resume_policy: Option<DeclaredResume>,
    /// The entry without `code`, in a canonical form.
    #[serde(skip)]
    pub(crate) definition: String,
}

/// Which calls become tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum DeclaredTask {
    Never,
    Auto,
    Always,
}

/// Policy for a function that is not durable, after its process was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum DeclaredOnCrash {
    Rerun,
    Fail,
}

/// Handler revisions that may resume a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum DeclaredResume {
    AnyRevision,
    SameRevision,
}

/// Reason why a `hello` is rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HelloError {
    /// The tool worker speaks another protocol.
    Protocol,
    /// The message is invalid, for this reason.
    Invalid(String),
}

impl Hello {
    /// Reads the value of `hello`.
    ///
    /// # Errors
    ///
    /// Returns the reason why the message is rejected.
    pub(crate) fn read(raw: &RawValue) -> Result<Self, HelloError> {
        #[derive(Deserialize)]
        struct Version {
            protocol: u32,
        }
        #[derive(Deserialize)]
        struct Message<'a> {
            #[serde(default)]
            sdk: String,
            name: Option<String>,
            #[serde(borrow)]
            tools: Vec<&'a RawValue>,
        }
        let invalid = |error: serde_json::Error| HelloError::Invalid(format!("`hello`: {error}"));
        // Read first, because another protocol may have other members.
        let Version { protocol } = serde_json::from_str(raw.get()).map_err(invalid)?;
        if protocol != PROTOCOL {
            return Err(HelloError::Protocol);
        }
        let Message { sdk, name, tools } = serde_json::from_str(raw.get()).map_err(invalid)?;
        let tools = DeclaredTool::read_all(&tools).map_err(HelloError::Invalid)?;
        Ok(Self { sdk, name, tools })
    }
}

impl DeclaredTool {
    /// Reads the declared entries of a tool worker.
    ///
    /// # Errors
    ///
    /// Returns the reason with the name of the tool.
    pub(crate) fn read_all(tools: &[&RawValue]) -> Result<Vec<Self>, String> {
        if tools.len() > MAX_TOOLS {
            return Err(format!(
                "a tool worker has at most {MAX_TOOLS} tools, not {}",
                tools.len()
            ));
        }
        let mut names = HashSet::new();
        let mut read = Vec::with_capacity(tools.len());
        for raw in tools {
            let tool = Self::read(raw)?;
            if !names.insert(tool.name.clone()) {
                return Err(format!("the tool `{}` is declared twice", tool.name));
            }
            read.push(tool);
        }
        Ok(read)
    }

    fn read(raw: &RawValue) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Name {
            name: Option<String>,
        }
        let tool: Self = serde_json::from_str(raw.get()).map_err(|error| {
            let name = serde_json::from_str(raw.get()).ok().and_then(|Name { name }| name);
            match name {
                Some(name) => format!("the declared entry of the tool `{name}`: {error}"),
                None => format!("a declared entry of a tool: {error}"),
            }
        })?;
        if tool.name.is_empty() {
            return Err("the name of a tool is empty".to_owned());
        }
        let definition = definition(raw).map_err(|error| error.to_string())?;
        Ok(Self { definition, ..tool })
    }

    /// Returns whether another process may start a call of the tool again if it is not durable.
    pub(crate) fn may_rerun(&self) -> bool {
        match self.on_crash {
            Some(on_crash) => on_crash == DeclaredOnCrash::Rerun,
            None => self.read_only == Some(true) || self.idempotent == Some(true),
        }
    }
}

/// Returns an entry without `code`, with sorted members.
fn definition(raw: &RawValue) -> serde_json::Result<String> {
    let mut entry: BTreeMap<String, serde_json::Value> = serde_json::from_str(raw.get())?;
    entry.remove("code");
    serde_json::to_string(&entry)
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::{DeclaredTask, Hello, HelloError};

    fn read(text: &str) -> Result<Hello, HelloError> {
        Hello::read(&RawValue::from_string(text.to_owned()).unwrap())
    }

    #[track_caller]
    fn reason(text: &str) -> String {
        match read(text) {
            Err(HelloError::Invalid(reason)) => reason,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn hello_is_read_with_defaults_and_unknown_members() {
        let hello = read(
            r#"{"protocol":1,"sdk":"py 1","new":2,"tools":[{"name":"a"},{"name":"b","task":"always","durable":true,"x":1}]}"#,
        )
        .unwrap();
        assert_eq!((hello.sdk.as_str(), hello.name, hello.tools.len()), ("py 1", None, 2));
        let (a, b) = (&hello.tools[0], &hello.tools[1]);
        assert!(!a.durable && a.task.is_none() && a.definition == r#"{"name":"a"}"#);
        assert!(b.durable && b.task == Some(DeclaredTask::Always));
    }

    #[test]
    fn hello_of_other_protocol_is_rejected_before_its_members() {
        assert_eq!(read(r#"{"protocol":2,"tools":5}"#).unwrap_err(), HelloError::Protocol);
    }

    #[test]
    fn invalid_entry_is_rejected_with_name_of_tool() {
        let wrong = r#"{"protocol":1,"tools":[{"name":"deploy","durable":"yes"}]}"#;
        assert!(reason(wrong).contains("`deploy`"), "{}", reason(wrong));
        let twice = r#"{"protocol":1,"tools":[{"name":"a"},{"name":"a"}]}"#;
        assert!(reason(twice).contains("`a` is declared twice"));
        assert!(reason(r#"{"protocol":1}"#).contains("tools"));
        assert!(reason(r#"{"protocol":1,"tools":[{"name":""}]}"#).contains("empty"));
        assert!(reason(r#"{"protocol":1,"tools":[{"title":"x"}]}"#).contains("name"));
    }
}
