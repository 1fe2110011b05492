//! Input requests of legacy calls, which wait for the response.

mod endings; // timeouts, withdrawn input requests, calls and connections that end
mod ids; // request IDs of the server
mod replay; // `replay_on_input`
mod streams; // Streamable HTTP and HTTP+SSE
