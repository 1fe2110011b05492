//! What clients answer, and what becomes of it.

mod capabilities; // nothing is asked that was not declared
mod forms; // how each revision shows them
mod malformed; // answers that are none
mod models; // sampling, with tools and without; roots
mod replies; // accepted, declined, dismissed
mod rounds; // missing, surplus, misfitting, parallel, too many
mod suspension; // what becomes of a run whose call is sent away
mod urls; // sending the user somewhere
