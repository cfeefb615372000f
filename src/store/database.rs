//! A database as the store uses it: transactions of statements in SQL that SQLite and PostgreSQL understand alike.

use std::fmt;
use std::path::PathBuf;

use ::postgres::Config;

use crate::{Error, Result};

/// A value in a row, or a parameter of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cell {
    /// A number.
    Integer(i64),
    /// A text without null characters.
    Text(String),
    /// Any bytes.
    Bytes(Vec<u8>),
}

impl Cell {
    /// The number; zero for anything else.
    #[must_use]
    pub fn integer(self) -> i64 {
        if let Self::Integer(number) = self { number } else { 0 }
    }

    /// The text; empty for anything else.
    #[must_use]
    pub fn text(self) -> String {
        if let Self::Text(text) = self { text } else { String::new() }
    }

    /// The bytes; none for anything else.
    #[must_use]
    pub fn bytes(self) -> Vec<u8> {
        if let Self::Bytes(bytes) = self { bytes } else { Vec::new() }
    }
}

impl From<i64> for Cell {
    fn from(number: i64) -> Self {
        Self::Integer(number)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<&[u8]> for Cell {
    fn from(bytes: &[u8]) -> Self {
        Self::Bytes(bytes.to_vec())
    }
}

/// The kind of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// Only reads.
    Read,
    /// Reads and writes.
    Write,
    /// Changes the tables; only one process does at a time.
    Migrate,
}

/// The failure of a step of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The reason, as the database says it.
    pub reason: String,
    /// The way on.
    pub recovery: Recovery,
}

/// The way on after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recovery {
    /// Another transaction was in the way: repeat this one.
    Repeat,
    /// Report it: the same would fail again.
    GiveUp,
    /// Open another connection: this one is lost.
    Reconnect,
}

/// A connection to a database.
///
/// Every method fails with the reason of the database.
#[allow(clippy::missing_errors_doc, reason = "said once, for the whole trait")]
pub trait Database: Send {
    /// The type of a column of bytes.
    fn bytes_type(&self) -> &'static str;

    /// Begins a transaction.
    fn begin(&mut self, access: Access) -> Result<(), Failure>;

    /// Runs a statement. Its parameters are `$1`, `$2`, …, and first appear in this order.
    fn run(&mut self, sql: &'static str, parameters: &[Cell]) -> Result<Vec<Vec<Cell>>, Failure>;

    /// Creates a table or an index.
    fn create(&mut self, sql: &str) -> Result<(), Failure>;

    /// Makes the transaction durable.
    fn commit(&mut self) -> Result<(), Failure>;

    /// Forgets the transaction.
    fn roll_back(&mut self) -> Result<(), Failure>;
}

/// The place of a store.
#[derive(Debug, Clone)]
pub(super) enum Target {
    Memory,
    Sqlite(PathBuf),
    Postgres(Box<Config>),
}

impl Target {
    /// Parses a URL: `sqlite:crib.db`, `sqlite::memory:` or `postgresql://user@host/database`.
    pub(super) fn parse(url: &str) -> Result<Self> {
        let invalid = |reason: String| Error::InvalidStoreUrl { url: without_password(url), reason };
        if let Some(path) = url.strip_prefix("sqlite:") {
            // `sqlite:///relative` and `sqlite:////absolute` are common as well.
            let path = path.strip_prefix("///").unwrap_or(path);
            return match path {
                ":memory:" => Ok(Self::Memory),
                "" => Err(invalid("missing path: expected `sqlite:path`".to_owned())),
                _ if path.contains('\0') => Err(invalid("the path contains a null character".to_owned())),
                _ if path.starts_with("//") => Err(invalid("expected `sqlite:path` or `sqlite:///path`".to_owned())),
                _ => Ok(Self::Sqlite(path.into())),
            };
        }
        if url.starts_with("postgresql://") || url.starts_with("postgres://") {
            let config = url.parse().map_err(|error: ::postgres::Error| invalid(error.to_string()))?;
            return Ok(Self::Postgres(Box::new(config)));
        }
        Err(invalid("expected `sqlite:path` or `postgresql://…`".to_owned()))
    }
}

impl fmt::Display for Target {
    /// The URL without secrets.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => formatter.write_str("sqlite::memory:"),
            Self::Sqlite(path) => write!(formatter, "sqlite:{}", path.display()),
            Self::Postgres(config) => {
                let host = match config.get_hosts().first() {
                    Some(::postgres::config::Host::Tcp(host)) => host.clone(),
                    #[cfg(unix)]
                    Some(::postgres::config::Host::Unix(path)) => path.display().to_string(),
                    None => String::new(),
                };
                let port = config.get_ports().first().map(|port| format!(":{port}")).unwrap_or_default();
                write!(formatter, "postgresql://{host}{port}/{}", config.get_dbname().unwrap_or_default())
            }
        }
    }
}

/// A URL for a message: what stands before an `@` may be a password.
fn without_password(url: &str) -> String {
    match (url.split_once("://"), url.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, host))) => format!("{scheme}://…@{host}"),
        _ => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_a_file_or_a_server() {
        for (url, shown) in [
            ("sqlite:crib.db", "sqlite:crib.db"),
            ("sqlite:///crib.db", "sqlite:crib.db"),
            ("sqlite:////var/crib.db", "sqlite:/var/crib.db"),
            ("sqlite::memory:", "sqlite::memory:"),
            ("postgresql://ann:secret@db:5433/crib", "postgresql://db:5433/crib"),
        ] {
            assert_eq!(Target::parse(url).unwrap().to_string(), shown);
        }
    }

    #[test]
    fn a_wrong_url_is_refused_without_its_password() {
        for url in ["crib.db", "sqlite:", "mysql://ann:secret@db/crib", "postgresql://ann:secret@db:port/crib"] {
            let error = Target::parse(url).unwrap_err().to_string();

            assert!(error.starts_with("invalid store URL") && !error.contains("secret"), "{error}");
        }
    }
}
