//! Encodes notifications that are the same in both eras.

use outlive_wire::{LoggingLevel, Method};
use serde::Serialize;
use serde_json::value::RawValue;

use super::error::put;
use crate::{Change, Progress};

pub(super) fn method_of(change: &Change) -> Method {
    match change {
        Change::Tools => Method::ToolsListChanged,
        Change::Prompts => Method::PromptsListChanged,
        Change::Resources => Method::ResourcesListChanged,
        Change::Resource(_) => Method::ResourceUpdated,
    }
}

pub(super) fn progress(token: &str, progress: &Progress, out: &mut Vec<u8>) {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Params<'a> {
        progress_token: &'a RawValue,
        #[serde(flatten)]
        far: Far<'a>,
    }
    let Ok(progress_token) = serde_json::from_str::<&RawValue>(token) else { return };
    let params = Params { progress_token, far: Far::of(progress) };
    notification(Method::Progress.as_str(), &params, out);
}

/// Progress in the format of the specification.
#[derive(Serialize)]
pub(super) struct Far<'a> {
    progress: Number,
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
}

impl<'a> Far<'a> {
    pub(super) fn of(progress: &'a Progress) -> Self {
        Self {
            progress: Number(progress.done),
            total: progress.total.map(Number),
            message: progress.message.as_deref(),
        }
    }
}

/// A float that serializes as an integer if it is one: `50`, not `50.0`.
struct Number(f64);

impl Serialize for Number {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        const EXACT: f64 = 9_007_199_254_740_992.0;
        match self.0.fract() == 0.0 && self.0.abs() < EXACT {
            true => serializer.serialize_i64(self.0 as i64),
            false => serializer.serialize_f64(self.0),
        }
    }
}

pub(super) fn log(level: LoggingLevel, logger: Option<&str>, data: &RawValue, out: &mut Vec<u8>) {
    #[derive(Serialize)]
    struct Params<'a> {
        level: LoggingLevel,
        #[serde(skip_serializing_if = "Option::is_none")]
        logger: Option<&'a str>,
        data: &'a RawValue,
    }
    notification(Method::LogMessage.as_str(), &Params { level, logger, data }, out);
}

pub(super) fn custom(method: &str, params: Option<&RawValue>, out: &mut Vec<u8>) {
    match params {
        Some(params) => notification(method, params, out),
        None => notification(method, &serde_json::Map::new(), out),
    }
}

pub(super) fn notification(method: &str, params: &(impl Serialize + ?Sized), out: &mut Vec<u8>) {
    out.extend_from_slice(br#"{"jsonrpc":"2.0","method":"#);
    put(&method, out);
    out.extend_from_slice(br#","params":"#);
    put(&params, out);
    out.push(b'}');
}
