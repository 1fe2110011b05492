//! Catalogs: the lists of each upstream, per capability class, and per principal if the credential
//! belongs to it.

mod definitions;
mod pins;
mod read;
mod slots;
mod stored;

pub(crate) use definitions::{Definitions, Digest};
pub(crate) use pins::Pins;
pub(crate) use read::read;
pub(crate) use slots::{Catalogs, Ensured, Reading};
pub(crate) use stored::StoredCatalogs;
