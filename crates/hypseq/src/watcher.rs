//! Waiting for watermark files to change, and for the operator to lose patience.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};

/// Files are looked at this often in any case: not every file system reports changes, and a signal is no change.
const POLL: Duration = Duration::from_millis(100);

/// Watches folders for changes, and the process for Ctrl-C.
pub struct Watcher {
    changes: Receiver<()>,
    /// None where the file system cannot be watched, and polling is all there is.
    _folders: Option<RecommendedWatcher>,
    stop: Arc<AtomicBool>,
}

impl Watcher {
    /// Watches the folders of these files: a file that is replaced by a rename cannot be watched itself. From here on
    /// Ctrl-C does not end the process, it only sets [`Watcher::is_stopped`]; a second one does end it.
    pub fn new(files: &[PathBuf]) -> Result<Self> {
        let (sender, changes) = channel();
        // Whatever it reports, the files are read to see what changed.
        let watcher = notify::recommended_watcher(move |_| _ = sender.send(())).ok();
        let watcher = watcher.and_then(|watcher| watch_folders(watcher, files));
        Ok(Self { changes, _folders: watcher, stop: stop_on_signals()? })
    }

    /// Whether somebody asked the process to end.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Returns when something may have changed, and not after `deadline`.
    pub fn wait(&self, deadline: Instant) {
        let at_most = deadline.saturating_duration_since(Instant::now()).min(POLL);
        match self.changes.recv_timeout(at_most) {
            // Of a burst, one is enough.
            Ok(()) => while self.changes.try_recv().is_ok() {},
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => std::thread::sleep(at_most),
        }
    }
}

/// The watcher, if it can watch every folder.
fn watch_folders(mut watcher: RecommendedWatcher, files: &[PathBuf]) -> Option<RecommendedWatcher> {
    let folders: BTreeSet<&Path> = files.iter().filter_map(|file| file.parent()).collect();
    folders.into_iter().all(|folder| watcher.watch(folder, RecursiveMode::NonRecursive).is_ok()).then_some(watcher)
}

fn stop_on_signals() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        let failed = || format!("signal {signal} cannot be handled");
        signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&stop)).with_context(failed)?;
        signal_hook::flag::register(signal, Arc::clone(&stop)).with_context(failed)?;
    }
    Ok(stop)
}
