//! A file system in memory that fails on request, and loses what was not synced when it crashes.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use toolcrib::store::{FileAccess, FileInfo, Fs};

/// The fault at a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It alone fails with this number.
    Once(i32),
    /// It fails with this number, and so does every later one that needs space.
    Full(i32),
    /// The power goes: it and every later one fail and do nothing.
    Crash,
}

/// The part of unsynced data that survives a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Remains {
    Nothing,
    Half,
    Everything,
}

#[derive(Debug, Clone, Default)]
struct Content {
    written: Vec<u8>,
    durable: Vec<u8>,
    access: FileAccess,
    claimed_by: Option<usize>,
}

/// A change of names that is not yet durable.
#[derive(Debug, Clone)]
enum Change {
    Add(PathBuf, usize),
    Rename(PathBuf, PathBuf),
    Remove(PathBuf),
}

#[derive(Debug, Clone, Default)]
struct World {
    contents: Vec<Content>,
    names: BTreeMap<PathBuf, usize>,
    durable_names: BTreeMap<PathBuf, usize>,
    changes: Vec<Change>,
}

type Hook = Box<dyn FnOnce(&Model)>;

/// The file system; a clone shares its files, as another process does.
#[derive(Clone, Default)]
pub(crate) struct Model {
    world: Rc<RefCell<World>>,
    calls: Rc<Cell<usize>>,
    opened: Rc<Cell<usize>>,
    fault: Option<(usize, Fault)>,
    hook: Rc<RefCell<Option<(usize, Hook)>>>,
    /// The most that one call writes.
    portion: Option<usize>,
}

pub(crate) struct Handle {
    model: Model,
    id: usize,
    content: usize,
    position: usize,
}

impl Drop for Handle {
    fn drop(&mut self) {
        let mut world = self.model.world.borrow_mut();
        let content = &mut world.contents[self.content];
        if content.claimed_by == Some(self.id) {
            content.claimed_by = None;
        }
    }
}

fn apply(names: &mut BTreeMap<PathBuf, usize>, change: &Change) {
    match change {
        Change::Add(path, content) => {
            names.insert(path.clone(), *content);
        }
        Change::Rename(from, to) => {
            if let Some(content) = names.remove(from) {
                names.insert(to.clone(), content);
            }
        }
        Change::Remove(path) => {
            names.remove(path);
        }
    }
}

impl Model {
    /// The same files, with a fault at one of the calls that are made from now on.
    pub(crate) fn failing(&self, at: usize, fault: Fault) -> Self {
        Self { calls: Rc::default(), fault: Some((at, fault)), ..self.clone() }
    }

    /// The same files, with something that is done before one of the calls.
    pub(crate) fn interrupted(&self, at: usize, hook: impl FnOnce(&Self) + 'static) -> Self {
        let hook: Hook = Box::new(hook);
        Self { calls: Rc::default(), hook: Rc::new(RefCell::new(Some((at, hook)))), ..self.clone() }
    }

    /// The same files, of which at most so many bytes are written at once.
    pub(crate) fn portioned(&self, bytes: usize) -> Self {
        Self { portion: Some(bytes), ..self.clone() }
    }

    /// The number of calls that were made.
    pub(crate) fn calls(&self) -> usize {
        self.calls.get()
    }

    /// Every name there is.
    pub(crate) fn names(&self) -> Vec<PathBuf> {
        self.world.borrow().names.keys().cloned().collect()
    }

    /// The files as they may be after a crash: for each prefix of the changes of names, each fate of the contents.
    pub(crate) fn after_crash(&self) -> Vec<Self> {
        let world = self.world.borrow();
        let mut found = Vec::new();
        for kept in 0..=world.changes.len() {
            for remains in [Remains::Nothing, Remains::Half, Remains::Everything] {
                let mut names = world.durable_names.clone();
                world.changes[..kept].iter().for_each(|change| apply(&mut names, change));
                let contents = world.contents.iter().map(|content| {
                    let bytes = match remains {
                        Remains::Nothing => content.durable.clone(),
                        // What was made durable stays: nothing here is ever written over.
                        Remains::Half => {
                            content.written[..usize::midpoint(content.durable.len(), content.written.len())].to_vec()
                        }
                        Remains::Everything => content.written.clone(),
                    };
                    Content { written: bytes.clone(), durable: bytes, access: content.access, claimed_by: None }
                });
                let contents = contents.collect();
                let world = World { contents, durable_names: names.clone(), names, changes: Vec::new() };
                found.push(Self { world: Rc::new(RefCell::new(world)), portion: self.portion, ..Self::default() });
            }
        }
        found
    }

    fn call(&self, needs_space: bool) -> io::Result<()> {
        let call = self.calls.get();
        self.calls.set(call + 1);
        let hook = self.hook.borrow_mut().take_if(|(at, _)| *at == call);
        if let Some((_, hook)) = hook {
            hook(self);
        }
        match self.fault {
            Some((at, Fault::Once(code))) if call == at => Err(io::Error::from_raw_os_error(code)),
            Some((at, Fault::Full(code))) if call >= at && needs_space => Err(io::Error::from_raw_os_error(code)),
            Some((at, Fault::Crash)) if call >= at => Err(io::Error::other("the power is gone")),
            _ => Ok(()),
        }
    }

    fn change(&self, change: Change) {
        let mut world = self.world.borrow_mut();
        apply(&mut world.names, &change);
        world.changes.push(change);
    }

    fn handle(&self, content: usize) -> Handle {
        self.opened.set(self.opened.get() + 1);
        Handle { model: self.clone(), id: self.opened.get(), content, position: 0 }
    }

    fn info_of(&self, content: usize) -> FileInfo {
        let world = self.world.borrow();
        let names = world.names.values().filter(|named| **named == content).count() as u64;
        let Content { written, access, .. } = &world.contents[content];
        FileInfo { is_regular: true, names, size: written.len() as u64, access: *access }
    }

    fn content_at(&self, path: &Path) -> Option<usize> {
        self.world.borrow().names.get(path).copied()
    }
}

impl Fs for Model {
    type File = Handle;

    fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        self.call(false)?;
        Ok(path.to_owned())
    }

    fn path_info(&self, path: &Path) -> io::Result<Option<FileInfo>> {
        self.call(false)?;
        Ok(self.content_at(path).map(|content| self.info_of(content)))
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<OsString>> {
        self.call(false)?;
        let paths = self.names().into_iter().filter(|path| path.parent() == Some(folder));
        Ok(paths.filter_map(|path| path.file_name().map(ToOwned::to_owned)).collect())
    }

    fn open(&self, path: &Path) -> io::Result<Handle> {
        self.call(false)?;
        let content = self.content_at(path).ok_or(ErrorKind::NotFound)?;
        Ok(self.handle(content))
    }

    fn create(&self, path: &Path) -> io::Result<Handle> {
        self.call(true)?;
        if self.content_at(path).is_some() {
            return Err(ErrorKind::AlreadyExists.into());
        }
        let content = {
            let mut world = self.world.borrow_mut();
            world
                .contents
                .push(Content { access: FileAccess { mode: 0o600, ..FileAccess::default() }, ..Content::default() });
            world.contents.len() - 1
        };
        self.change(Change::Add(path.to_owned(), content));
        Ok(self.handle(content))
    }

    fn append(&self, path: &Path) -> io::Result<Handle> {
        match self.content_at(path) {
            Some(content) => self.call(false).map(|()| self.handle(content)),
            None => self.create(path),
        }
    }

    fn make_folder(&self, _folder: &Path) -> io::Result<()> {
        self.call(true)
    }

    fn file_info(&self, file: &Handle) -> io::Result<FileInfo> {
        self.call(false)?;
        Ok(self.info_of(file.content))
    }

    fn claim(&self, file: &Handle) -> io::Result<bool> {
        self.call(false)?;
        let mut world = self.world.borrow_mut();
        let claimed_by = &mut world.contents[file.content].claimed_by;
        Ok(*claimed_by.get_or_insert(file.id) == file.id)
    }

    fn set_access(&self, file: &Handle, access: FileAccess) -> io::Result<()> {
        self.call(false)?;
        self.world.borrow_mut().contents[file.content].access = access;
        Ok(())
    }

    fn read(&self, file: &mut Handle, buffer: &mut [u8]) -> io::Result<usize> {
        self.call(false)?;
        let world = self.world.borrow();
        let rest = &world.contents[file.content].written[file.position..];
        let count = rest.len().min(buffer.len()).min(self.portion.unwrap_or(usize::MAX));
        buffer[..count].copy_from_slice(&rest[..count]);
        file.position += count;
        Ok(count)
    }

    fn last_byte(&self, file: &Handle) -> io::Result<Option<u8>> {
        self.call(false)?;
        Ok(self.world.borrow().contents[file.content].written.last().copied())
    }

    fn write(&self, file: &mut Handle, bytes: &[u8]) -> io::Result<usize> {
        self.call(true)?;
        let count = bytes.len().min(self.portion.unwrap_or(usize::MAX));
        self.world.borrow_mut().contents[file.content].written.extend_from_slice(&bytes[..count]);
        Ok(count)
    }

    fn sync(&self, file: &Handle) -> io::Result<()> {
        self.call(true)?;
        let mut world = self.world.borrow_mut();
        let content = &mut world.contents[file.content];
        content.durable.clone_from(&content.written);
        Ok(())
    }

    fn sync_data(&self, file: &Handle) -> io::Result<()> {
        self.sync(file)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.call(false)?;
        if self.content_at(from).is_none() {
            return Err(ErrorKind::NotFound.into());
        }
        self.change(Change::Rename(from.to_owned(), to.to_owned()));
        Ok(())
    }

    fn sync_folder(&self, _folder: &Path) -> io::Result<()> {
        self.call(false)?;
        let mut world = self.world.borrow_mut();
        world.durable_names = world.names.clone();
        world.changes.clear();
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.call(false)?;
        if self.content_at(path).is_none() {
            return Err(ErrorKind::NotFound.into());
        }
        self.change(Change::Remove(path.to_owned()));
        Ok(())
    }
}
