//! The resource server: who is calling, by the token that the caller shows.
