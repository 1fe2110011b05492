//! Host, Origin, CORS, tokens and addresses.
