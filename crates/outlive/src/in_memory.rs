//! Clients of a server in the same process.

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
