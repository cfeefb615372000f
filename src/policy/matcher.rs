//! Which names a condition of a rule is about.

use super::glob::{self, Glob, Parsed};

/// Names and globs of which one has to fit.
///
/// Names are compared byte by byte: a letter that looks like another one is another one.
#[derive(Debug, Clone)]
pub(super) struct Names {
    /// In order, to be searched.
    exact: Box<[Box<str>]>,
    globs: Box<[Glob]>,
}

impl Names {
    /// Reads names and globs; the error says which one is wrong, and why.
    pub(super) fn parse<'a>(patterns: impl IntoIterator<Item = &'a str>) -> Result<Self, String> {
        let (mut exact, mut globs) = (Vec::new(), Vec::new());
        for pattern in patterns {
            match glob::parse(pattern).map_err(|reason| format!("`{pattern}` is no name and no glob: {reason}"))? {
                Parsed::Exact(name) => exact.push(name),
                Parsed::Glob(glob) => globs.push(glob),
            }
        }
        exact.sort_unstable();
        exact.dedup();
        Ok(Self { exact: exact.into(), globs: globs.into() })
    }

    /// Reads names and globs of callers, among which `""` stands for a call that nobody is named for.
    pub(super) fn of_callers<'a>(patterns: impl IntoIterator<Item = &'a str>) -> Result<Self, String> {
        let (nobody, names): (Vec<_>, Vec<_>) = patterns.into_iter().partition(|pattern| pattern.is_empty());
        let mut read = Self::parse(names)?;
        if !nobody.is_empty() {
            // The empty name goes before all others.
            read.exact = std::iter::once(Box::from("")).chain(read.exact).collect();
        }
        Ok(read)
    }

    /// Whether a caller is one of them; a glob is never about nobody.
    pub(super) fn fit_caller(&self, caller: Option<&str>) -> bool {
        match caller {
            Some(caller) => self.fit(caller),
            None => self.exact.first().is_some_and(|first| first.is_empty()),
        }
    }

    /// Whether the name is one of them.
    pub(super) fn fit(&self, name: &str) -> bool {
        let is_exact = match &*self.exact {
            [only] => **only == *name,
            exact => exact.binary_search_by(|known| (**known).cmp(name)).is_ok(),
        };
        is_exact || self.globs.iter().any(|glob| glob.is_match(name))
    }

    /// Whether one of the names is one of them.
    pub(super) fn fit_any(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.fit(name))
    }

    pub(super) fn exact(&self) -> &[Box<str>] {
        &self.exact
    }

    pub(super) fn globs(&self) -> &[Glob] {
        &self.globs
    }

    /// Whether the rules that name these can be found without trying each of them.
    pub(super) fn can_be_indexed(&self) -> bool {
        self.globs.iter().all(|glob| !glob.prefix().is_empty() || !glob.suffix().is_empty())
    }
}
