//! Every row of bad input over HTTP, with its status and code.
