//! Tests of authorization, by behaviour, over real sockets.

mod fetch; // documents of others: what is fetched, and what is not
