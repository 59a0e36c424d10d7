//! Ctrl-C while a statement runs: it ends the statement, not the program.

use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use futures::future::{self, Either};
use futures::task::AtomicWaker;
use signal_hook::consts::SIGINT;

/// How often a waiting statement looks whether Ctrl-C was pressed.
const PERIOD: Duration = Duration::from_millis(50);

/// Takes Ctrl-C for itself, from when it is made until the program ends.
pub struct Interrupt {
    pressed: Arc<AtomicBool>,
}

impl Interrupt {
    /// # Errors
    /// The system does not let the signal be handled.
    pub fn take() -> io::Result<Self> {
        let pressed = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(SIGINT, Arc::clone(&pressed))?;
        Ok(Self { pressed })
    }

    /// Watches from now on; what was pressed before does not count.
    pub fn watch(&self) -> Watch {
        self.pressed.store(false, Ordering::Relaxed);
        let waker = Arc::new(AtomicWaker::new());
        let (done, wait) = mpsc::channel();
        let (pressed, woken) = (Arc::clone(&self.pressed), Arc::clone(&waker));
        // A signal handler cannot wake a future, so a thread does, as long as the watch is kept.
        thread::spawn(move || {
            while wait.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
                if pressed.load(Ordering::Relaxed) {
                    woken.wake();
                }
            }
        });
        Watch { pressed: Arc::clone(&self.pressed), waker, _done: done }
    }
}

/// Sees Ctrl-C until it is dropped.
pub struct Watch {
    pressed: Arc<AtomicBool>,
    waker: Arc<AtomicWaker>,
    /// The thread ends when this is dropped.
    _done: Sender<()>,
}

impl Watch {
    pub fn is_pressed(&self) -> bool {
        self.pressed.load(Ordering::Relaxed)
    }

    /// What the future gives; none, and the future dropped, once Ctrl-C was pressed.
    pub async fn unless_pressed<F: Future>(&self, future: F) -> Option<F::Output> {
        let pressed = future::poll_fn(|context| {
            self.waker.register(context.waker());
            if self.is_pressed() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
        });
        match future::select(pressed, pin!(future)).await {
            Either::Left(_) => None,
            Either::Right((output, _)) => Some(output),
        }
    }
}
