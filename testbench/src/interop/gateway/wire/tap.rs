//! A TCP proxy that records the messages of an HTTP server.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use anyhow::{Context, Result};

use super::http::HttpReader;
use super::seen::{Seen, Sender};

/// The messages of all connections, in the order of their arrival.
type Record = Arc<Mutex<Vec<Seen>>>;

/// A proxy on a free port. It accepts connections until it is dropped.
#[derive(Debug)]
pub(in super::super) struct HttpTap {
    address: SocketAddr,
    record: Record,
    is_closed: Arc<AtomicBool>,
}

impl HttpTap {
    /// Starts a proxy of a server that listens on `target`.
    pub(in super::super) fn start(target: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no free port")?;
        let address = listener.local_addr()?;
        let (record, is_closed) = (Record::default(), Arc::new(AtomicBool::new(false)));
        let (recorded, closed) = (Arc::clone(&record), Arc::clone(&is_closed));
        thread::spawn(move || {
            for connection in listener.incoming().map_while(Result::ok) {
                if closed.load(Ordering::SeqCst) {
                    return;
                }
                // Without a server, the client sees that its connection is closed.
                if let Ok(server) = TcpStream::connect(target) {
                    let _ = relay(connection, server, &recorded);
                }
            }
        });
        Ok(Self { address, record, is_closed })
    }

    /// The address of the proxy with this path.
    pub(in super::super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The messages so far.
    pub(in super::super) fn messages(&self) -> Vec<Seen> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for HttpTap {
    fn drop(&mut self) {
        self.is_closed.store(true, Ordering::SeqCst);
        // Wakes the thread that accepts connections.
        let _ = TcpStream::connect(self.address);
    }
}

/// Copies both directions of a connection, each in its thread.
fn relay(client: TcpStream, server: TcpStream, record: &Record) -> std::io::Result<()> {
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (to_server, from_server) = (server.try_clone()?, server);
    let (to_client, from_client) = (client.try_clone()?, client);
    let (requests, responses) = (Arc::clone(record), Arc::clone(record));
    thread::spawn(move || copy(from_client, to_server, Sender::Client, &requests));
    thread::spawn(move || copy(from_server, to_client, Sender::Server, &responses));
    Ok(())
}

/// Copies one direction. Records a message before its last byte is sent, so that the record has
/// every message that a peer has received.
fn copy(mut from: TcpStream, mut to: TcpStream, sender: Sender, record: &Record) {
    let mut reader = HttpReader::default();
    let mut buffer = vec![0; 64 << 10];
    while let Ok(size @ 1..) = from.read(&mut buffer) {
        let messages = reader.read(&buffer[..size]);
        let seen = messages.into_iter().map(|message| Seen { sender, message });
        record.lock().unwrap_or_else(PoisonError::into_inner).extend(seen);
        if to.write_all(&buffer[..size]).is_err() {
            break;
        }
    }
    // The other direction may still have data, so only this one ends.
    let _ = to.shutdown(Shutdown::Write);
    let _ = from.shutdown(Shutdown::Read);
}
