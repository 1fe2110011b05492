//! `outlive upstreams`, as far as it needs no server.

mod import; // files of hosts
