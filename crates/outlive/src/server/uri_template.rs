//! URI templates of resources, in both directions.

pub use outlive_schema::uri_template::{UriTemplate, UriTemplateError};
