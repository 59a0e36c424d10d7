//! The folder of a sink instance: its lock, its receipts and its watermarks, never reached through a link.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use uuid::Uuid;

use super::Step;
use super::error::{ConsumeError, Refusal};
use super::receipt::{Receipt, ReceiptFile, receipts_of};
use crate::fsio::{Walk, create, keep_owner, none_if_missing, remove_if_there, sync_folder, walk};
use crate::model::{Observed, Plan, Sink};
use crate::path::WatermarkPath;
use crate::watermark::{WatermarkError, parse_watermark};
use crate::write::to_text;

/// Far more than any watermark has.
const MAX_WATERMARK_BYTES: u64 = 64 << 10;

/// A sink instance that stands in the home.
pub(super) struct Instance<'a> {
    state_root: &'a Path,
    /// Below the state root.
    relative: String,
    pub(super) dir: PathBuf,
    on_step: &'a dyn Fn(Step) -> io::Result<()>,
}

/// The lock of a sink instance.
pub(super) struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing would do, were it not for children: one that another thread has just forked holds the file, and
        // with it the lock, until it runs its own program.
        let _ = self.0.unlock();
    }
}

/// A watermark file as found.
pub(super) struct Found {
    pub(super) path: PathBuf,
    pub(super) text: String,
    pub(super) metadata: Metadata,
}

impl Found {
    /// What it says.
    pub(super) fn parse(&self) -> Result<Observed, Refusal> {
        parse_watermark(&self.text).map_err(|source| Refusal::Watermark { path: self.path.clone(), source })
    }
}

impl<'a> Instance<'a> {
    /// The instance of a sink, which must exist.
    pub(super) fn open(
        state_root: &'a Path,
        sink: &Sink,
        on_step: &'a dyn Fn(Step) -> io::Result<()>,
    ) -> Result<Self, ConsumeError> {
        let relative = sink.instance_path().map_err(Refusal::from)?;
        let dir = state_root.join(&relative);
        let found = expect(walk(state_root, &relative), &dir, "a folder", Metadata::is_dir)?;
        if found.is_none() {
            return Err(Refusal::NoInstance { path: dir }.into());
        }
        let rewinds = walk(state_root, &format!("{relative}/rewinds"));
        expect(rewinds, &dir.join("rewinds"), "a folder", Metadata::is_dir)?;
        Ok(Self { state_root, relative, dir, on_step })
    }

    pub(super) fn state_root(&self) -> &Path {
        self.state_root
    }

    /// Takes the lock, which is held until it is dropped. The lock file itself stays.
    pub(super) fn lock(&self) -> Result<Lock, ConsumeError> {
        let path = self.dir.join("rewind.lock");
        let relative = format!("{}/rewind.lock", self.relative);
        expect(walk(self.state_root, &relative), &path, "a regular file", Metadata::is_file)?;
        let file = OpenOptions::new().create(true).truncate(false).read(true).write(true).open(&path);
        let file = file.map_err(failed(&path, "open"))?;
        self.adopt(&file);
        match file.try_lock() {
            Ok(()) => Ok(Lock(file)),
            Err(TryLockError::WouldBlock) => Err(Refusal::Locked { path }.into()),
            Err(TryLockError::Error(source)) => Err(failed(&path, "lock")(source)),
        }
    }

    /// Every receipt, all of which must be readable: one that is not may stand for a run that did not end. A copy
    /// under another name stands for nothing.
    pub(super) fn receipts(&self) -> Result<Vec<Receipt>, ConsumeError> {
        let found = receipts_of(&self.dir).map_err(failed(&self.dir.join("rewinds"), "list"))?;
        let mut receipts = Vec::new();
        for ReceiptFile { path, receipt } in found {
            let receipt = receipt?;
            if path == Receipt::path(&self.dir, receipt.id) {
                receipts.push(receipt);
            }
        }
        Ok(receipts)
    }

    /// The receipt of a plan, if there is one.
    pub(super) fn receipt(&self, id: Uuid) -> Result<Option<Receipt>, ConsumeError> {
        let path = Receipt::path(&self.dir, id);
        match none_if_missing(fs::symlink_metadata(&path)).map_err(failed(&path, "look"))? {
            Some(_) => Ok(Some(Receipt::read(&path)?)),
            None => Ok(None),
        }
    }

    /// The receipt of exactly this plan.
    pub(super) fn receipt_of(&self, plan: &Plan) -> Result<Receipt, ConsumeError> {
        let path = Receipt::path(&self.dir, plan.id);
        match self.receipt(plan.id)? {
            None => Err(Refusal::NoReceipt { path }.into()),
            Some(receipt) if receipt.plan_checksum == plan.checksum => Ok(receipt),
            Some(_) => Err(Refusal::AnotherPlan { path }.into()),
        }
    }

    /// Writes a receipt, whole and flushed, over an older one.
    pub(super) fn write_receipt(&self, receipt: &Receipt) -> Result<(), ConsumeError> {
        let state = receipt.last().map(|attempt| attempt.state);
        let folder = self.receipts_folder()?;
        let path = Receipt::path(&self.dir, receipt.id);
        let temporary = path.with_extension("json.tmp");
        let text = to_text(receipt).map_err(|e| failed(&path, "serialise")(e.into()))?;

        self.step(Step::WriteReceipt { state }, &path)?;
        create(&temporary, text.as_bytes(), None).map_err(failed(&temporary, "write"))?;
        if let Ok(file) = File::open(&temporary) {
            self.adopt(&file);
        }
        self.step(Step::PublishReceipt { state }, &path)?;
        fs::rename(&temporary, &path).map_err(failed(&path, "rename"))?;
        sync_folder(&folder).map_err(failed(&folder, "flush"))
    }

    /// Removes the receipt of a run that changed nothing.
    pub(super) fn remove_receipt(&self, receipt: &Receipt) -> Result<(), ConsumeError> {
        let path = Receipt::path(&self.dir, receipt.id);
        self.step(Step::RemoveReceipt, &path)?;
        if remove_if_there(&path).map_err(failed(&path, "remove"))? {
            let folder = self.dir.join("rewinds");
            sync_folder(&folder).map_err(failed(&folder, "flush"))?;
        }
        Ok(())
    }

    /// The folder of the receipts, made if need be.
    fn receipts_folder(&self) -> Result<PathBuf, ConsumeError> {
        let folder = self.dir.join("rewinds");
        let relative = format!("{}/rewinds", self.relative);
        if expect(walk(self.state_root, &relative), &folder, "a folder", Metadata::is_dir)?.is_none() {
            let mut builder = DirBuilder::new();
            #[cfg(unix)]
            std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
            builder.create(&folder).map_err(failed(&folder, "create"))?;
            if let Ok(file) = File::open(&folder) {
                self.adopt(&file);
            }
            sync_folder(&self.dir).map_err(failed(&self.dir, "flush"))?;
        }
        Ok(folder)
    }

    /// A watermark as it is now.
    pub(super) fn watermark(&self, watermark: &WatermarkPath) -> Result<Found, ConsumeError> {
        let path = watermark.under(self.state_root);
        let found = walk(self.state_root, watermark.as_str());
        let metadata = expect(found, &path, "a regular file", Metadata::is_file)?
            .ok_or_else(|| Refusal::NoWatermark { path: path.clone() })?;
        let mut bytes = Vec::new();
        let read = File::open(&path).and_then(|file| file.take(MAX_WATERMARK_BYTES).read_to_end(&mut bytes));
        read.map_err(failed(&path, "read"))?;
        let text = String::from_utf8(bytes).map_err(|e| {
            let source = WatermarkError::Shape(serde::de::Error::custom(e));
            Refusal::Watermark { path: path.clone(), source }
        })?;
        Ok(Found { path, text, metadata })
    }

    /// Removes every temporary file that a run which did not end has left. Only called under the lock, so
    /// none of them is in use.
    pub(super) fn sweep(&self) -> Result<(), ConsumeError> {
        self.step(Step::RemoveTemporaries, &self.dir)?;
        self.sweep_folder("rewinds", |name| name.ends_with(".json.tmp"))?;
        self.sweep_folder("watermarks", is_temporary)
    }

    fn sweep_folder(&self, name: &str, is_ours: fn(&str) -> bool) -> Result<(), ConsumeError> {
        let folder = self.dir.join(name);
        let found = walk(self.state_root, &format!("{}/{name}", self.relative));
        match expect(found, &folder, "a folder", Metadata::is_dir)? {
            Some(_) => sweep(&folder, is_ours),
            None => Ok(()),
        }
    }

    /// Announces a step.
    pub(super) fn step(&self, step: Step, path: &Path) -> Result<(), ConsumeError> {
        (self.on_step)(step).map_err(failed(path, step.doing()))
    }

    /// Gives what this crate adds to the folder the folder's owner, so that a rewind by root does not lock
    /// the daemon out. A user who is not root cannot, and need not.
    fn adopt(&self, file: &File) {
        if let Ok(metadata) = fs::metadata(&self.dir) {
            let _ = keep_owner(file, &metadata);
        }
    }
}

/// The two temporary files of a swap stand beside the watermark: the new content and the old.
pub(super) fn temporary(watermark: &Path, id: Uuid, suffix: &str) -> PathBuf {
    let mut name = watermark.as_os_str().to_owned();
    name.push(format!(".rewind-{id}.{suffix}"));
    name.into()
}

fn is_temporary(name: &str) -> bool {
    let id = name.strip_suffix(".new").or_else(|| name.strip_suffix(".old"));
    id.and_then(|name| name.rsplit_once(".json.rewind-")).is_some_and(|(_, id)| Uuid::parse_str(id).is_ok())
}

fn sweep(folder: &Path, is_ours: fn(&str) -> bool) -> Result<(), ConsumeError> {
    let listing = fs::read_dir(folder).map_err(failed(folder, "list"))?;
    for entry in listing {
        let entry = entry.map_err(failed(folder, "list"))?;
        let path = entry.path();
        let kind = entry.file_type().map_err(failed(&path, "look"))?;
        if kind.is_dir() {
            sweep(&path, is_ours)?;
        } else if entry.file_name().to_str().is_some_and(is_ours) {
            remove_if_there(&path).map_err(failed(&path, "remove"))?;
        }
    }
    Ok(())
}

/// What stands at the end of a walk, if anything; it must be of the kind that belongs there.
fn expect(
    found: io::Result<Walk>,
    path: &Path,
    expected: &'static str,
    is_expected: fn(&Metadata) -> bool,
) -> Result<Option<Metadata>, ConsumeError> {
    match found.map_err(failed(path, "look"))? {
        Walk::Found(metadata) if is_expected(&metadata) => Ok(Some(metadata)),
        Walk::Found(_) => Err(Refusal::Kind { path: path.to_owned(), expected }.into()),
        Walk::Missing => Ok(None),
        Walk::Link(path) => Err(Refusal::Link { path }.into()),
        Walk::NotAFolder(path) => Err(Refusal::Kind { path, expected: "a folder" }.into()),
    }
}

/// An error of the file system with its place.
pub(super) fn failed(path: &Path, doing: &'static str) -> impl FnOnce(io::Error) -> ConsumeError {
    move |source| ConsumeError::Io { path: path.to_owned(), doing, source }
}
