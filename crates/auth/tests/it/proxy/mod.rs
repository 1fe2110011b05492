//! The proxy, over real sockets: a provider behind it, a browser and clients before it.

mod attacks; // what a stranger, another client or another browser tries with a login
mod browser; // keeps cookies, and goes where it is sent
mod clients; // who a client is: registrations, and documents
mod idp; // an identity provider
mod kit; // a server behind its proxy, with a provider behind that
mod logins; // ways to a token, and what becomes of it
mod scopes; // which scopes a user gets
mod secrets; // where the provider's tokens are, and where they never are
mod store; // logins that are kept with the tasks
mod tickets; // codes and refresh tokens: once, by whom they are for, in time
