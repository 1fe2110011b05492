//! Clients of a server in the same process.

use crate::{
    client::{InMemoryServer, Target},
    server::Server,
};

impl From<&Server> for Target {
    fn from(server: &Server) -> Self {
        let server = server.clone();
        Self::Server(InMemoryServer::new(move || server.endpoint()))
    }
}
