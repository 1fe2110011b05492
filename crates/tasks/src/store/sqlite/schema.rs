//! Creates the tables in an empty file, and rejects a file with other tables.

use rusqlite::{Connection, TransactionBehavior};

use super::{error::SqliteError, statement::one};
use crate::store::{
    StoreError,
    fingerprint::{PRE_RELEASE, fingerprint},
};

const TABLES: &str = include_str!("schema/tables.sql");

/// The `application_id` of our files: "outl".
const APPLICATION: i64 = 0x6f75_746c;

/// The schema version of this program, as in `user_version`.
pub(super) const KNOWN: usize = 1;

/// Creates the tables if the file is empty. Uses one transaction under the write lock, because
/// several processes may open the file at the same time.
pub(super) fn migrate(connection: &mut Connection) -> Result<(), SqliteError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    match look(&transaction)? {
        0 => {
            transaction.execute_batch(TABLES)?;
            let made = "INSERT INTO schema_version (fingerprint) VALUES (?1)";
            transaction.execute(made, [fingerprint(&[TABLES])])?;
        }
        KNOWN => {}
        version => {
            return Err(StoreError::Incompatible(format!(
                "a newer version of this program has written the file (schema version \
                 {version}, supported is {KNOWN}); upgrade this program"
            ))
            .into());
        }
    }
    // SQLite silently opens a read-only file and fails at the first write. This statement is a
    // write without effect, so that the error appears here.
    transaction.execute_batch("DELETE FROM change_log WHERE number < 0")?;
    transaction.commit()?;
    Ok(())
}

/// Returns the schema version of a file; zero if it is empty. Changes nothing.
pub(super) fn look(connection: &Connection) -> Result<usize, SqliteError> {
    let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    let application = number("PRAGMA application_id")?;
    let version = number("PRAGMA user_version")?;
    let tables = number("SELECT count(*) FROM sqlite_schema")?;
    if (application, version, tables) == (0, 0, 0) {
        return Ok(0);
    }
    let refused = |what: &str| Err(StoreError::Incompatible(what.to_owned()).into());
    if application != APPLICATION {
        return refused("the file is a database of another program; use another file");
    }
    let version = usize::try_from(version).unwrap_or(usize::MAX);
    let ours = "SELECT count(*) FROM sqlite_schema WHERE name = 'schema_version'";
    let (is_named, made) = match number(ours)? {
        0 => (false, None),
        _ => {
            let made = "SELECT fingerprint FROM schema_version";
            (true, one(connection, made, [], |row| row.get::<_, String>(0))?)
        }
    };
    if is_named && version > KNOWN {
        return Ok(version);
    }
    if version != KNOWN || made != Some(fingerprint(&[TABLES])) {
        return refused(PRE_RELEASE);
    }
    Ok(version)
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::{KNOWN, look, migrate};

    fn migrated() -> Connection {
        let mut connection = Connection::open_in_memory().unwrap();
        assert_eq!(look(&connection).unwrap(), 0);
        migrate(&mut connection).unwrap();
        connection
    }

    fn refused(connection: &mut Connection, says: &str) {
        let Err(error) = migrate(connection) else { panic!("the file is accepted") };
        let error = error.with(std::path::Path::new("tasks.db")).to_string();
        assert!(error.contains(says) && error.contains("tasks.db"), "{error}");
    }

    #[test]
    fn current_file_stays_unchanged() {
        let mut connection = migrated();
        let before = connection.query_row("PRAGMA schema_version", [], |row| row.get::<_, i64>(0));
        migrate(&mut connection).unwrap();
        let after = connection.query_row("PRAGMA schema_version", [], |row| row.get::<_, i64>(0));
        assert_eq!((before, look(&connection).unwrap()), (after, KNOWN));
    }

    #[test]
    fn newer_file_is_rejected() {
        let mut connection = migrated();
        connection.execute_batch("PRAGMA user_version = 2").unwrap();
        refused(&mut connection, "upgrade this program");
        assert_eq!(look(&connection).unwrap(), 2);
    }

    #[test]
    fn file_with_another_fingerprint_is_rejected_as_pre_release() {
        let mut connection = migrated();
        connection.execute_batch("UPDATE schema_version SET fingerprint = 'other'").unwrap();
        refused(&mut connection, "created by a pre-release; delete it");
    }

    #[test]
    fn file_without_fingerprint_is_rejected_as_pre_release() {
        let mut connection = migrated();
        connection.execute_batch("DROP TABLE schema_version; PRAGMA user_version = 7").unwrap();
        refused(&mut connection, "created by a pre-release; delete it");
    }
}
