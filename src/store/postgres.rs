//! PostgreSQL: a store that several machines share.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::Duration;

use ::postgres::config::SslMode;
use ::postgres::error::SqlState;
use ::postgres::types::{ToSql, Type};
use ::postgres::{Client, Config, NoTls, Row, Statement};

use super::database::{Access, Cell, Database, Failure, Recovery, Target};
use super::tls::Tls;
use crate::{Error, Result};

/// The most time that a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The lock of the process that changes the tables.
const MIGRATION: &str = "SELECT pg_advisory_xact_lock(7310585117623919984)";

/// A connection to a PostgreSQL database.
pub(super) struct Postgres {
    client: Client,
    statements: HashMap<&'static str, Statement>,
}

impl Postgres {
    /// Connects. A lock of another process, or a network that is lost, stops a statement for no longer than `timeout`.
    pub(super) fn connect(config: &Config, timeout: Duration) -> Result<Self> {
        let mut config = config.clone();
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(timeout.min(CONNECT_TIMEOUT));
        }
        #[cfg(target_os = "linux")]
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(timeout);
        }
        if config.get_application_name().is_none() {
            config.application_name("toolcrib");
        }
        let store = || Target::Postgres(Box::new(config.clone())).to_string();
        let refused = |error| Error::StoreFailed { store: store(), reason: Failure::from(error).reason };
        let connected = if config.get_ssl_mode() == SslMode::Require {
            let tls = Tls::new().map_err(|error| Error::StoreFailed { store: store(), reason: error.to_string() })?;
            config.connect(tls)
        } else {
            config.connect(NoTls)
        };
        let mut client = connected.map_err(refused)?;
        let limit = timeout.as_millis().clamp(1, i32::MAX as u128);
        let limits = format!("SET statement_timeout = {limit}; SET lock_timeout = {limit}");
        client.batch_execute(&limits).map_err(refused)?;
        Ok(Self { client, statements: HashMap::new() })
    }
}

impl From<::postgres::Error> for Failure {
    fn from(error: ::postgres::Error) -> Self {
        // The text of the client names only the kind; that of the server has the reason.
        let reason = match (error.as_db_error(), std::error::Error::source(&error)) {
            (Some(server), _) => server.message().to_owned(),
            (None, Some(source)) => format!("{error}: {source}"),
            (None, None) => error.to_string(),
        };
        let recovery = match error.code() {
            Some(&SqlState::T_R_DEADLOCK_DETECTED | &SqlState::T_R_SERIALIZATION_FAILURE) => Recovery::Repeat,
            // The server ends connections when it is restarted.
            Some(&SqlState::ADMIN_SHUTDOWN | &SqlState::CRASH_SHUTDOWN | &SqlState::CANNOT_CONNECT_NOW) | None => {
                Recovery::Reconnect
            }
            Some(_) if error.is_closed() => Recovery::Reconnect,
            Some(_) => Recovery::GiveUp,
        };
        Self { reason, recovery }
    }
}

fn cells(row: &Row) -> Result<Vec<Cell>, Failure> {
    let cell = |(at, column): (usize, &::postgres::Column)| {
        Ok(match *column.type_() {
            Type::TEXT => Cell::Text(row.try_get(at)?),
            Type::BYTEA => Cell::Bytes(row.try_get(at)?),
            Type::INT4 => Cell::Integer(row.try_get::<_, i32>(at)?.into()),
            _ => Cell::Integer(row.try_get(at)?),
        })
    };
    row.columns().iter().enumerate().map(cell).collect()
}

impl Database for Postgres {
    fn bytes_type(&self) -> &'static str {
        "BYTEA"
    }

    fn begin(&mut self, access: Access) -> Result<(), Failure> {
        let sql = if access == Access::Read { "BEGIN READ ONLY" } else { "BEGIN" };
        self.client.batch_execute(sql)?;
        if access == Access::Migrate {
            self.client.batch_execute(MIGRATION)?;
        }
        Ok(())
    }

    fn run(&mut self, sql: &'static str, parameters: &[Cell]) -> Result<Vec<Vec<Cell>>, Failure> {
        let statement = match self.statements.entry(sql) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(self.client.prepare(sql)?),
        };
        let parameters: Vec<&(dyn ToSql + Sync)> = parameters
            .iter()
            .map(|cell| match cell {
                Cell::Integer(number) => number as &(dyn ToSql + Sync),
                Cell::Text(text) => text,
                Cell::Bytes(bytes) => bytes,
            })
            .collect();
        self.client.query(&*statement, &parameters)?.iter().map(cells).collect()
    }

    fn create(&mut self, sql: &str) -> Result<(), Failure> {
        Ok(self.client.batch_execute(sql)?)
    }

    fn commit(&mut self) -> Result<(), Failure> {
        Ok(self.client.batch_execute("COMMIT")?)
    }

    fn roll_back(&mut self) -> Result<(), Failure> {
        Ok(self.client.batch_execute("ROLLBACK")?)
    }
}
