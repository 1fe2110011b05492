//! Questions as requests to the client, while the call waits.

mod endings; // time-outs, withdrawals, calls and connections that end
mod ids; // which answer belongs to which question
mod replay; // handlers that run again at every answer
mod streams; // Streamable HTTP and HTTP+SSE
