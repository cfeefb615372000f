//! Signing keys of pending calls, and the files they are stored in.

use std::fmt;
use std::path::Path;

use hmac::{Hmac, KeyInit, Mac};
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::bytes::{from_hex, hex};
use crate::store::{FileFormat, Fs, Get, Put, Store, load, retry_interrupted, save};
use crate::{Error, Result};

const FORMAT: FileFormat = FileFormat { name: "toolcrib-approval-key", version: 1, limit: 4096 };

/// The public id of a key.
pub(super) type KeyId = [u8; 8];

/// A secret of 256 random bits.
#[derive(Clone, PartialEq, Eq)]
pub struct Key {
    secret: [u8; 32],
    id: KeyId,
}

impl Key {
    /// Makes a key from 256 random bits.
    #[must_use]
    pub fn new(random: [u8; 32]) -> Self {
        let mut key = Self { secret: random, id: KeyId::default() };
        let sum = key.sign("key id", b"");
        key.id.copy_from_slice(&sum[..8]);
        key
    }

    /// Makes the key of a secret that several processes know. The secret must not be guessable.
    #[must_use]
    pub fn of_secret(secret: &[u8]) -> Self {
        Self::new(Sha256::new().chain_update("toolcrib approval key\0").chain_update(secret).finalize().into())
    }

    /// The key that all users of a store share; `random` becomes this key if the store has none.
    ///
    /// # Errors
    ///
    /// Those of the store, and [`Error::DamagedFile`] for an invalid key.
    pub fn in_store(store: &Store, random: [u8; 32]) -> Result<Self> {
        let (space, key) = (FORMAT.name.to_owned(), "key".to_owned());
        let value = hex(&random).into_bytes();
        match store.run(Put { space: space.clone(), key: key.clone(), value, expected: Some(0) }) {
            Ok(_) => return Ok(Self::new(random)),
            Err(Error::VersionConflict { .. }) => {}
            Err(error) => return Err(error),
        }
        let saved = store.run(Get { space, key })?;
        let secret = saved.and_then(|entry| from_hex(std::str::from_utf8(&entry.value).ok()?));
        secret.map(Self::new).ok_or_else(|| Error::DamagedFile {
            path: store.url(),
            reason: "its key for approvals is invalid".to_owned(),
        })
    }

    /// Signs bytes for a purpose; a signature for one purpose is never valid for another.
    pub(super) fn sign(&self, purpose: &str, bytes: &[u8]) -> [u8; 32] {
        self.mac(purpose, bytes).finalize().into_bytes().into()
    }

    /// True if the signature is valid; the comparison takes constant time.
    pub(super) fn verifies(&self, purpose: &str, bytes: &[u8], signature: &[u8; 32]) -> bool {
        self.mac(purpose, bytes).verify_slice(signature).is_ok()
    }

    pub(super) fn id(&self) -> KeyId {
        self.id
    }

    fn mac(&self, purpose: &str, bytes: &[u8]) -> Hmac<Sha256> {
        // HMAC pads a key to a block with zeros.
        let mut block = [0; 64];
        block[..32].copy_from_slice(&self.secret);
        let mac = Hmac::<Sha256>::new(&block.into());
        mac.chain_update("toolcrib ").chain_update(purpose).chain_update([0]).chain_update(bytes)
    }

    /// The keys in a folder, always in the same order.
    ///
    /// There are several only where two processes created the first key at the same time, or one was copied into the
    /// folder. All of them are valid, so that no process has to wait for a lock.
    pub(super) fn all_in<F: Fs>(fs: &F, folder: &Path) -> Result<Vec<Self>> {
        let names = retry_interrupted(|| fs.list(folder)).map_err(|error| Error::access("read", folder, &error))?;
        let ids = names.iter().filter_map(|name| name.to_str()?.strip_prefix("key-")?.strip_suffix(".json"));
        let mut ids: Vec<&str> = ids.collect();
        ids.sort_unstable();
        ids.into_iter().map(|id| Self::load(fs, folder, id)).collect()
    }

    fn load<F: Fs>(fs: &F, folder: &Path, id: &str) -> Result<Self> {
        let path = folder.join(format!("key-{id}.json"));
        let saved = load(fs, &path, &FORMAT)?;
        let key = saved.value.get("key").and_then(|key| from_hex(key.as_str()?)).map(Self::new);
        key.filter(|key| hex(&key.id()) == id).ok_or_else(|| Error::DamagedFile {
            path: path.display().to_string(),
            reason: "the key does not match the file name".to_owned(),
        })
    }

    /// Saves the key in a folder, readable by its owner only.
    pub(super) fn save_in<F: Fs>(&self, fs: &F, folder: &Path) -> Result<()> {
        let path = folder.join(format!("key-{}.json", hex(&self.id())));
        save(fs, &path, &FORMAT, &json!({ "key": hex(&self.secret) }))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", hex(&self.id()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_good_for_its_key_purpose_and_bytes_only() {
        let (key, other) = (Key::new([1; 32]), Key::new([2; 32]));

        let signature = key.sign("test", b"bytes");

        assert!(key.verifies("test", b"bytes", &signature));
        assert!(!other.verifies("test", b"bytes", &signature));
        assert!(!key.verifies("tes", b"tbytes", &signature));
        assert!(!key.verifies("test", b"byte", &signature));
        assert_ne!(key.id(), other.id());
    }

    #[test]
    fn a_key_does_not_show_its_secret() {
        assert!(!format!("{:?}", Key::new([0xab; 32])).contains("abab"));
    }
}
