//! What a step can record.

use serde::{Serialize, de::DeserializeOwned};

/// A value that a step can record: everything that serde can write and read.
///
/// Implemented for all such types. Its own purpose is the message of the compiler.
#[diagnostic::on_unimplemented(
    message = "a step cannot record `{Self}`",
    label = "the type of the recorded value is not known, or is no serde type",
    note = "annotate what the step returns: `let value: T = cx.step(…).await?`, where `T` implements \
            `Serialize` and `Deserialize`"
)]
pub trait Recordable: Serialize + DeserializeOwned {}

// Otherwise the message would be about `Serialize`.
#[diagnostic::do_not_recommend]
impl<T: Serialize + DeserializeOwned> Recordable for T {}
