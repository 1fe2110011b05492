//! URI templates of resources: matching and expansion.

pub use outlive_schema::uri_template::{UriTemplate, UriTemplateError};
