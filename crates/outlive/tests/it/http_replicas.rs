//! Legacy sessions of a server that runs more than once, on one store.

mod answers; // what a client answers may come to any replica
mod outage; // a store that cannot be asked
mod sessions; // opened here, used there, ended everywhere
mod tasks; // one client, its requests spread over replicas
mod world; // replicas, and a store that can be switched off
