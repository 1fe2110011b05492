//! Processes that speak over their standard streams: their gateways are killed, and their requests
//! continue.

mod ending; // the end of processes, supervisors and gateways
mod gateway; // a gateway in a separate process, which is killed
mod messages; // messages in both directions
mod support; // a folder of processes, and a connection
mod surviving; // requests of gateways that are killed
