//! The pages and the API: bytes in, bytes out.

mod answering; // responses that a person sends from the answer page
mod api; // endpoints, permissions, errors, headers
mod attacks; // tokens of answer links that do not work, hostile text, limits
mod desk; // a console, and a browser
mod forms; // forms of the console, and requests of other origins
mod live; // event streams
mod oauth; // sign-in with OAuth
mod page; // the content of the answer page and its headers
mod sign_in; // sign-in by token and link, sessions
mod store_console; // a console without a server
mod support;
