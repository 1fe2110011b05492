//! Reads the task members of modern requests: the declared extensions, and the sequence number of a
//! poll.

use outlive_wire::{ClientCapabilities, Method};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::extensions::{PARTIALS, TASKS};
use crate::{Call, ClientTaskSupport, ProtocolError, TaskRequest};

/// Reads the task members of a request. Declarations of earlier requests do not count.
pub(super) fn read(call: &Call) -> TaskRequest {
    let declared: ClientCapabilities =
        serde_json::from_str(call.client_capabilities()).unwrap_or_default();
    let declares = |extension: &str| {
        declared.extensions.as_ref().is_some_and(|extensions| extensions.contains_key(extension))
    };
    let reads_segments = declares(PARTIALS);
    TaskRequest {
        support: match declares(TASKS) {
            true => ClientTaskSupport::Accepts,
            false => ClientTaskSupport::NotDeclared,
        },
        response_modes: Ok(None),
        after_seq: match reads_segments && call.method() == Some(Method::TasksGet) {
            true => after_seq(call),
            false => Ok(None),
        },
        reads_segments,
    }
}

/// Returns the sequence number of the last segment that the client has.
fn after_seq(call: &Call) -> Result<Option<u64>, ProtocolError> {
    #[derive(Deserialize)]
    struct Params<'a> {
        #[serde(borrow, default, rename = "_meta")]
        meta: Keys<'a>,
    }
    #[derive(Default, Deserialize)]
    struct Keys<'a> {
        #[serde(borrow, default, rename = "dev.outlive/afterSeq")]
        after: Option<&'a RawValue>,
    }
    let params: Params<'_> = serde_json::from_str(call.params())
        .map_err(|error| ProtocolError::invalid_params(format!("`params._meta`: {error}")))?;
    let Some(after) = params.meta.after else { return Ok(None) };
    match serde_json::from_str(after.get()) {
        Ok(after) => Ok(Some(after)),
        Err(_) => Err(ProtocolError::invalid_params(
            "`params._meta` `dev.outlive/afterSeq` must be an integer of at least 0",
        )),
    }
}
