//! PostgreSQL: a store that several machines share.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::Duration;

use ::postgres::types::{ToSql, Type};
use ::postgres::{Client, Config, NoTls, Row, Statement};

use super::database::{Access, Cell, Database, Failure, Target};
use crate::{Error, Result};

/// The time for which a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The time for which a statement may take, so that a lock of another process cannot stop the program.
const STATEMENT_TIMEOUT: &str = "SET statement_timeout = '30s'; SET lock_timeout = '30s'";

/// The lock of the process that changes the tables.
const MIGRATION: &str = "SELECT pg_advisory_xact_lock(7310585117623919984)";

/// A connection to a PostgreSQL database.
pub(super) struct Postgres {
    client: Client,
    statements: HashMap<&'static str, Statement>,
}

impl Postgres {
    pub(super) fn connect(config: &Config) -> Result<Self> {
        let mut config = config.clone();
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        if config.get_application_name().is_none() {
            config.application_name("toolcrib");
        }
        let refused = |error: ::postgres::Error| Error::StoreFailed {
            store: Target::Postgres(Box::new(config.clone())).to_string(),
            reason: Failure::from(error).reason,
        };
        let mut client = config.connect(NoTls).map_err(refused)?;
        client.batch_execute(STATEMENT_TIMEOUT).map_err(refused)?;
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
        Self { reason, is_lost: error.is_closed() || error.as_db_error().is_none() }
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
    fn column_types(&self) -> [&'static str; 2] {
        ["BYTEA", "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"]
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
