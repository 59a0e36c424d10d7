//! A spinner on stderr for whatever takes longer than a second.

use std::io::{self, IsTerminal};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// How long nothing is shown.
const PATIENCE: Duration = Duration::from_secs(1);

/// Spins until it is dropped; leaves nothing on the screen.
pub struct Progress {
    running: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Progress {
    /// Says what is going on, on a terminal only.
    pub fn start(quiet: bool, what: &'static str) -> Self {
        if quiet || !io::stderr().is_terminal() {
            return Self { running: None };
        }
        let (done, wait) = mpsc::channel();
        let spinner = thread::spawn(move || {
            if wait.recv_timeout(PATIENCE) != Err(RecvTimeoutError::Timeout) {
                return;
            }
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr())
                .with_style(ProgressStyle::default_spinner())
                .with_message(what);
            bar.enable_steady_tick(Duration::from_millis(100));
            // Ends when the sender is dropped.
            let _ = wait.recv();
            bar.finish_and_clear();
        });
        Self { running: Some((done, spinner)) }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((done, spinner)) = self.running.take() {
            drop(done);
            let _ = spinner.join();
        }
    }
}
