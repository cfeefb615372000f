//! Files for models: what an operation does, and that none leads out of its root.

#![allow(clippy::expect_used, clippy::format_collect, reason = "tests")]
#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod escape;
mod race;
mod raw;
mod service;
mod tools;
#[cfg(target_os = "linux")]
mod walk;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio_util::sync::CancellationToken;
use toolcrib::files::{FilePolicy, FileService, FileSystem, Grant, Ops};

/// A folder of its own, removed at the end; in memory where the system has that.
struct Place(PathBuf);

impl Place {
    fn new() -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let memory = Path::new("/dev/shm");
        let base = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = base.join(format!("toolcrib-files-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A service with all rights in a folder, which it knows as `/workspace/`.
fn service_with(root: &Path, policy: FilePolicy) -> FileService {
    let system = Arc::new(FileSystem::new().with_root("/workspace/", root, Ops::ALL).unwrap());
    let grant = Grant { prefix: "/workspace/".parse().unwrap(), ops: Ops::ALL };
    FileService::new(system.create_handle([grant]).unwrap(), policy)
}

fn service(root: &Path) -> FileService {
    service_with(root, FilePolicy { durable: false, ..FilePolicy::default() })
}

fn never() -> CancellationToken {
    CancellationToken::new()
}
