//! Input requests and input responses.

mod capabilities; // declared capabilities
mod forms; // forms in each version
mod malformed; // malformed input responses
mod models; // sampling and roots
mod replies; // `accept`, `decline`, `cancel`
mod rounds; // missing, extra, invalid and parallel input responses
mod suspension; // suspended calls
mod urls; // URL elicitation
