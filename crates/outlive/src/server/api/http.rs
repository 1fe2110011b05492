//! A server over HTTP.

use std::{io, sync::atomic::Ordering};

use outlive_transport::http::{self, HttpConfig, HttpServer, HttpService};
use tokio::net::ToSocketAddrs;

use crate::server::api::server::Server;

impl Server {
    /// Listens on an address and serves HTTP clients of all revisions there.
    ///
    /// # Errors
    ///
    /// When the address cannot be used; the message says what to do.
    pub async fn serve_http(
        &self,
        address: impl ToSocketAddrs,
        config: HttpConfig,
    ) -> io::Result<HttpServer> {
        let serving = http::serve(self.endpoint(), address, config).await?;
        self.core.transports.fetch_add(1, Ordering::AcqRel);
        Ok(serving)
    }

    /// The server as a tower service, to be mounted in an HTTP application.
    pub fn http_service(&self, config: HttpConfig) -> HttpService {
        HttpService::new(self.endpoint(), config)
    }
}
