//! What the example servers share: they serve HTTP, or stdio if told so.

mod serving;

pub use serving::{Arguments, serve};
