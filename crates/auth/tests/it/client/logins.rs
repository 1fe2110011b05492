//! logins.
