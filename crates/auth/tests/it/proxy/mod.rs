//! The proxy, over real sockets: a provider behind it, a browser and clients before it.

mod attacks; // what a stranger, another client or another browser tries with a login
mod clients; // who a client is: registrations, and documents
mod kit; // a provider, a server behind its proxy, and a browser
mod logins; // ways to a token, and what becomes of it
mod secrets; // where the provider's tokens are, and where they never are
mod store; // logins that are kept with the tasks
mod tickets; // codes and refresh tokens: once, by whom they are for, in time
