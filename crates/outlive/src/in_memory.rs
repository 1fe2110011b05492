//! Conversion of a server in this process into a client target.

use crate::{
    client::{Target, transport::InMemoryServer},
    server::Server,
};

impl From<&Server> for Target {
    fn from(server: &Server) -> Self {
        let server = server.clone();
        Self::Server(InMemoryServer::new(move || server.endpoint()))
    }
}
