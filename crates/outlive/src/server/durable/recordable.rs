//! The trait of values that a step can record.

use serde::{Serialize, de::DeserializeOwned};

/// A value that a step can record: any type that serde can serialize and deserialize.
///
/// Implemented for all such types. The trait exists for its compiler message.
#[diagnostic::on_unimplemented(
    message = "a step cannot record `{Self}`",
    label = "the type of the recorded value is unknown, or is not a serde type",
    note = "annotate what the step returns: `let value: T = cx.step(…).await?`, where `T` implements \
            `Serialize` and `Deserialize`"
)]
pub trait Recordable: Serialize + DeserializeOwned {}

// Without this attribute, the compiler message would be about `Serialize`.
#[diagnostic::do_not_recommend]
impl<T: Serialize + DeserializeOwned> Recordable for T {}
