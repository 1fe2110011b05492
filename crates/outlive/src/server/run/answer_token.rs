//! Answer tokens, which authorize the response to one input request.
//!
//! An answer link is `PUBLIC_URL/answer/TOKEN`. The token is the only credential of the page, so a
//! server creates one only for an input request that the holder of a link may answer.

use outlive_protocol::Seal;
use outlive_tasks::store::{InputSource, OpenInput, TaskId};
use outlive_wire::InputRequest;
use serde::{Deserialize, Serialize};

use crate::server::{env::environment::Env, time};

/// Content of an answer token: the input request that it belongs to.
#[derive(Serialize, Deserialize)]
pub(crate) struct AnswerToken {
    #[serde(rename = "t")]
    pub(crate) task: TaskId,
    #[serde(rename = "p")]
    pub(crate) principal: String,
    /// Wire key of the input request.
    #[serde(rename = "n")]
    pub(crate) name: String,
}

/// Context that tokens are sealed with, so that no other sealed data opens as a token.
const CONTEXT: [&str; 1] = [Seal::ANSWER_LINK];

impl AnswerToken {
    /// Returns a token for an open input request. Returns `None` if its audience excludes the
    /// holders of answer links, if no person can answer it on a page, or if the operating system
    /// provides no random bytes.
    pub(crate) fn seal(
        env: &Env,
        principal: &str,
        task: &TaskId,
        input: &OpenInput,
    ) -> Option<String> {
        if !is_answerable(env, input) {
            return None;
        }
        let content =
            Self { task: task.clone(), principal: principal.to_owned(), name: input.name.clone() };
        env.profile.seal.seal(&serde_json::to_vec(&content).ok()?, &CONTEXT)
    }

    /// Opens a token.
    pub(crate) fn open(env: &Env, token: &str) -> Option<Self> {
        let content = env.profile.seal.open(token, &CONTEXT)?;
        serde_json::from_slice(&content).ok()
    }
}

/// Returns whether the holder of an answer link may respond to an open input request now.
pub(crate) fn is_answerable(env: &Env, input: &OpenInput) -> bool {
    let now = time::now(&env.profile);
    matches!(input.request, InputRequest::Elicit(_))
        && input.audience.allows(InputSource::Link)
        && input.due.is_none_or(|due| now <= due)
}
