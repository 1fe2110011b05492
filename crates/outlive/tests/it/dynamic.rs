//! Adding, changing and removing while a server runs, and who is told.
