//! [`Form`]: types whose fields a user can fill in.

use std::{
    any::TypeId,
    collections::{BTreeSet, HashMap, HashSet},
    sync::{Arc, PoisonError, RwLock},
};

use outlive_wire::RequestedSchema;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::{convert, error::FormError};
use crate::field_order::declared_fields;

/// A type whose fields a user can fill in. Derive it, together with `Deserialize` and `JsonSchema`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a form",
    note = "derive it: `#[derive(serde::Deserialize, schemars::JsonSchema, outlive::Form)]`"
)]
pub trait Form: DeserializeOwned + JsonSchema + Send + 'static {}

/// A type that can be a field of a form: strings, numbers, booleans, one or several variants of an
/// enum, and `Option`s of these.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a field of a form",
    note = "a form is flat: strings, numbers, booleans, enums without data that derive `Form`, `Vec`s of such enums, and `Option`s of all these"
)]
pub trait FormField {}

/// An enum without data, from which a user can choose one or several variants. Derive [`Form`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a choice",
    note = "use an enum without data that derives `Form`"
)]
pub trait Choice: FormField {}

macro_rules! form_fields {
    ($($type:ty),*) => { $(impl FormField for $type {})* };
}

form_fields!(String, bool, f32, f64, i8, i16, i32, i64, isize, u8, u16, u32, u64, usize);

impl<T: FormField> FormField for Option<T> {}
impl<T: Choice> FormField for Vec<T> {}
impl<T: Choice> FormField for BTreeSet<T> {}
impl<T: Choice> FormField for HashSet<T> {}

type Made = Result<Arc<RequestedSchema>, FormError>;

// Read for every elicitation, written once per type.
static MADE: RwLock<Option<HashMap<TypeId, Made>>> = RwLock::new(None);

/// Returns the form of a type. Cached per type.
pub fn schema_of<T: Form>() -> Made {
    let id = TypeId::of::<T>();
    let known = MADE.read().unwrap_or_else(PoisonError::into_inner);
    if let Some(made) = known.as_ref().and_then(|known| known.get(&id)) {
        return made.clone();
    }
    drop(known);
    let made = convert::form::<T>(declared_fields::<T>()).map(Arc::new);
    let mut known = MADE.write().unwrap_or_else(PoisonError::into_inner);
    known.get_or_insert_default().insert(id, made.clone());
    made
}
