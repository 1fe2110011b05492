//! The answer page over a real socket: bytes in, bytes out.

mod answering; // responses that a person sends
mod attacks; // tokens that do not work, hostile text, limits
mod page; // the content of the page and its headers
mod support;
