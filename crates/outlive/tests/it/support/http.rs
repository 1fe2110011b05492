//! A raw HTTP/1.1 client, and a server with a standard set of tools.
