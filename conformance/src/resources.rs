//! The resources of the suite.

use outlive::server::{Args, Json, Resource, ResourceTemplate, ServerBuilder};

use crate::tools::PNG;

pub(crate) fn add(builder: ServerBuilder) -> ServerBuilder {
    builder
        .resource(
            Resource::new("test://static-text", "Static text", || async {
                "This is the content of the static text resource."
            })
            .mime_type("text/plain"),
        )
        .resource(
            Resource::new("test://static-binary", "Static binary", || async {
                outlive::wire::ResourceContents::blob_base64("test://static-binary", PNG)
            })
            .mime_type("image/png"),
        )
        .resource(
            Resource::new("test://watched-resource", "Watched", || async { "watched" })
                .mime_type("text/plain"),
        )
        .resource_template(
            ResourceTemplate::new("test://template/{id}/data", "Data by id", data)
                .mime_type("application/json"),
        )
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Id {
    id: String,
}

#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct Data {
    id: String,
    template_test: bool,
    data: String,
}

async fn data(Args(Id { id }): Args<Id>) -> Json<Data> {
    Json(Data { data: format!("Data for ID: {id}"), id, template_test: true })
}
