//! Serves a server over HTTP.

use std::{io, sync::atomic::Ordering};

use outlive_transport::http::{self, HttpConfig, HttpServer, HttpService};
use tokio::net::ToSocketAddrs;

use crate::server::api::server::Server;

impl Server {
    /// Binds `address` and serves HTTP clients of all enabled protocol versions.
    ///
    /// # Errors
    ///
    /// Returns an error if the address cannot be bound. The message names the remedy.
    pub async fn serve_http(
        &self,
        address: impl ToSocketAddrs,
        config: HttpConfig,
    ) -> io::Result<HttpServer> {
        let serving = http::serve(self.endpoint(), address, config).await?;
        self.core.transports.fetch_add(1, Ordering::AcqRel);
        Ok(serving)
    }

    /// Returns the server as a tower service, to be mounted in an HTTP application.
    pub fn http_service(&self, config: HttpConfig) -> HttpService {
        HttpService::new(self.endpoint(), config)
    }
}
