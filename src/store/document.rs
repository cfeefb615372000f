//! Operations on documents, of which all versions are kept until they are removed.

use jiff::Timestamp;

use super::database::{Access, Cell, Database, Failure};
use super::operation::{Operation, cell, check_names, next, now, number, time};
use crate::{Error, Result};

/// A version of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// Its number, higher than all before. Numbers are not used again after a removal, so that a writer from before cannot take
    /// the new document for the old.
    pub number: u64,
    /// The number of the first version of the document.
    pub first: u64,
    /// Facts about it, as JSON.
    pub about: Vec<u8>,
    /// Its content.
    pub content: Vec<u8>,
    /// The time of its writing.
    pub changed: Timestamp,
}

/// The number of the first version after the last removal, in a statement in which the table is called `this`. A version without facts
/// is the mark of a removal.
macro_rules! first {
    () => {
        "(SELECT COALESCE(MAX(version), 0) + 1 FROM toolcrib_versions AS removed
          WHERE removed.space = this.space AND removed.key = this.key AND length(about) = 0)"
    };
}

/// The last version under a key.
enum Last {
    None,
    Live(u64),
    /// The mark of a removal.
    Removed(u64),
}

impl Last {
    fn of(database: &mut dyn Database, space: &str, key: &str) -> Result<Self, Failure> {
        let rows = database.run(
            "SELECT version, length(about) FROM toolcrib_versions WHERE space = $1 AND key = $2
             ORDER BY version DESC LIMIT 1",
            &[space.into(), key.into()],
        )?;
        let Some(row) = rows.into_iter().next() else { return Ok(Self::None) };
        let mut row = row.into_iter();
        let (last, facts) = (number(next(&mut row)), next(&mut row).integer());
        Ok(if facts == 0 { Self::Removed(last) } else { Self::Live(last) })
    }

    /// The number of the last version of a document; zero if there is no document.
    fn live(&self) -> u64 {
        match self {
            Self::Live(last) => *last,
            Self::None | Self::Removed(_) => 0,
        }
    }

    /// The number of the next version.
    fn next(&self) -> u64 {
        match self {
            Self::None => 1,
            Self::Live(last) | Self::Removed(last) => last + 1,
        }
    }
}

/// Inserts a version; false if there is one of this number.
fn insert_version(
    database: &mut dyn Database,
    (space, key): (&str, &str),
    number: u64,
    about: &[u8],
    content: &[u8],
) -> Result<bool, Failure> {
    let added = database.run(
        "INSERT INTO toolcrib_versions (space, key, version, about, content, changed)
         VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (space, key, version) DO NOTHING RETURNING version",
        &[space.into(), key.into(), cell(number), about.into(), content.into(), now()],
    )?;
    Ok(!added.is_empty())
}

/// Adds a version to a document, if its last one is the expected one. The result is its number.
#[derive(Debug, Clone)]
pub struct AddVersion {
    /// The space.
    pub space: String,
    /// The key of the document.
    pub key: String,
    /// The number of the version that it follows; zero if there must be no document.
    pub after: u64,
    /// Facts about it, as JSON.
    pub about: Vec<u8>,
    /// Its content.
    pub content: Vec<u8>,
}

impl Operation for AddVersion {
    type Output = u64;
    const ACCESS: Access = Access::Write;

    fn perform(&self, database: &mut dyn Database) -> Result<Result<u64>, Failure> {
        let Self { space, key, after, about, content } = self;
        if let Err(error) = check_names(space, key) {
            return Ok(Err(error));
        }
        let mut last = Last::of(database, space, key)?;
        if last.live() == *after {
            let number = last.next();
            if insert_version(database, (space, key), number, about, content)? {
                return Ok(Ok(number));
            }
            // Another writer was faster.
            last = Last::of(database, space, key)?;
        }
        Ok(Err(Error::VersionConflict { key: key.clone(), expected: *after, version: last.live() }))
    }
}

/// Removes all versions of a document. The result is false if there is none.
#[derive(Debug, Clone)]
pub struct RemoveDocument {
    /// The space.
    pub space: String,
    /// The key of the document.
    pub key: String,
}

impl Operation for RemoveDocument {
    type Output = bool;
    const ACCESS: Access = Access::Write;

    fn perform(&self, database: &mut dyn Database) -> Result<Result<bool>, Failure> {
        let Self { space, key } = self;
        if let Err(error) = check_names(space, key) {
            return Ok(Err(error));
        }
        loop {
            let Last::Live(last) = Last::of(database, space, key)? else { return Ok(Ok(false)) };
            // The mark refuses the writers that have seen the last version. If one was faster, its version is the last one.
            if insert_version(database, (space, key), last + 1, &[], &[])? {
                database.run(
                    "DELETE FROM toolcrib_versions WHERE space = $1 AND key = $2 AND version <= $3 RETURNING version",
                    &[space.as_str().into(), key.as_str().into(), cell(last)],
                )?;
                return Ok(Ok(true));
            }
        }
    }
}

/// Reads a version of a document, the last one if none is named.
#[derive(Debug, Clone)]
pub struct Latest {
    /// The space.
    pub space: String,
    /// The key of the document.
    pub key: String,
    /// The version, counted from 1 since the document exists.
    pub version: Option<u64>,
}

impl Operation for Latest {
    type Output = Option<Version>;
    const ACCESS: Access = Access::Read;

    fn perform(&self, database: &mut dyn Database) -> Result<Result<Option<Version>>, Failure> {
        if let Err(error) = check_names(&self.space, &self.key) {
            return Ok(Err(error));
        }
        let (space, key) = (Cell::from(self.space.as_str()), Cell::from(self.key.as_str()));
        let rows = match self.version {
            None => database.run(
                concat!(
                    "SELECT version, ",
                    first!(),
                    ", about, content, changed FROM toolcrib_versions AS this WHERE space = $1 AND key = $2
                     ORDER BY version DESC LIMIT 1"
                ),
                &[space, key],
            )?,
            Some(0) => Vec::new(),
            Some(version) => database.run(
                concat!(
                    "SELECT version, ",
                    first!(),
                    ", about, content, changed FROM toolcrib_versions AS this WHERE space = $1 AND key = $2
                     AND version - ",
                    first!(),
                    " = $3"
                ),
                &[space, key, cell(version - 1)],
            )?,
        };
        let found = rows.into_iter().next().map(version);
        Ok(Ok(found.filter(|version| !version.about.is_empty())))
    }
}

fn version(row: Vec<Cell>) -> Version {
    let mut row = row.into_iter();
    let (at, first) = (number(next(&mut row)), number(next(&mut row)));
    let (about, content) = (next(&mut row).bytes(), next(&mut row).bytes());
    Version { number: at, first, about, content, changed: time(next(&mut row).integer()) }
}

/// Lists the versions of a document, oldest first, without their content.
#[derive(Debug, Clone)]
pub struct Versions {
    /// The space.
    pub space: String,
    /// The key of the document.
    pub key: String,
}

impl Operation for Versions {
    type Output = Vec<Version>;
    const ACCESS: Access = Access::Read;

    fn perform(&self, database: &mut dyn Database) -> Result<Result<Vec<Version>>, Failure> {
        if let Err(error) = check_names(&self.space, &self.key) {
            return Ok(Err(error));
        }
        let rows = database.run(
            concat!(
                "SELECT version, ",
                first!(),
                ", about, substr(content, 1, 0), changed FROM toolcrib_versions AS this
                 WHERE space = $1 AND key = $2 AND version >= ",
                first!(),
                " ORDER BY version"
            ),
            &[self.space.as_str().into(), self.key.as_str().into()],
        )?;
        Ok(Ok(rows.into_iter().map(version).collect()))
    }
}

/// The last version of a document, with the beginning of its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// The key of the document.
    pub key: String,
    /// The version; its content is only the beginning, and may end inside of a letter.
    pub last: Version,
}

/// Lists the documents of a space, sorted by their keys, with 1024 bytes of each.
#[derive(Debug, Clone)]
pub struct Summaries {
    /// The space.
    pub space: String,
}

impl Operation for Summaries {
    type Output = Vec<Summary>;
    const ACCESS: Access = Access::Read;

    fn perform(&self, database: &mut dyn Database) -> Result<Result<Vec<Summary>>, Failure> {
        let rows = database.run(
            concat!(
                "SELECT version, ",
                first!(),
                ", about, substr(content, 1, 1024), changed, key FROM toolcrib_versions AS this
                 WHERE space = $1 AND length(about) > 0 AND version =
                 (SELECT MAX(version) FROM toolcrib_versions AS other WHERE other.space = this.space AND other.key = this.key)"
            ),
            &[self.space.as_str().into()],
        )?;
        let mut summaries: Vec<Summary> = rows
            .into_iter()
            .map(|mut row| Summary { key: row.pop().unwrap_or(Cell::Integer(0)).text(), last: version(row) })
            .collect();
        summaries.sort_unstable_by(|one, other| one.key.cmp(&other.key));
        Ok(Ok(summaries))
    }
}
