//! The program on a terminal of its own, whose screen can be read.

use std::io::{Read, Write};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

/// How long a slow machine may take.
const PATIENCE: Duration = Duration::from_mins(1);

pub struct Terminal {
    child: Box<dyn Child + Send + Sync>,
    keys: Box<dyn Write + Send>,
    screen: Arc<Screen>,
    /// The terminal is there as long as this is.
    _master: Box<dyn MasterPty + Send>,
}

struct Screen {
    shown: Mutex<Shown>,
    changed: Condvar,
}

struct Shown {
    parser: vt100::Parser,
    /// All that was written to it.
    written: Vec<u8>,
}

impl Shown {
    /// Lines without the blanks at their ends.
    fn text(&self) -> String {
        let contents = self.parser.screen().contents();
        let lines: Vec<&str> = contents.lines().map(str::trim_end).collect();
        lines.join("\n").trim_end().to_owned()
    }

    /// How often the program has begun to read a line: it then asks for brackets around what is pasted.
    fn prompts(&self) -> usize {
        self.written.windows(8).filter(|bytes| *bytes == b"\x1b[?2004h").count()
    }
}

impl Terminal {
    /// Starts the program on a terminal of 80 columns and 24 lines, its state in a folder.
    pub fn start(args: &[&str], state: &Path) -> Self {
        Self::start_with(args, state, (80, 24))
    }

    pub fn start_with(args: &[&str], state: &Path, size: (u16, u16)) -> Self {
        Self::start_program(env!("CARGO_BIN_EXE_hypseq"), args, state, size)
    }

    /// Starts any program so.
    pub fn start_program(program: &str, args: &[&str], state: &Path, (cols, rows): (u16, u16)) -> Self {
        let size = PtySize { rows, cols, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).expect("a terminal");
        let mut command = CommandBuilder::new(program);
        command.args(args);
        command.cwd(state);
        command.env_remove("HYP_HOME");
        command.env("NO_COLOR", "1");
        command.env("TERM", "xterm-256color");
        command.env("XDG_STATE_HOME", state);
        let child = pair.slave.spawn_command(command).expect("the program starts");
        let mut output = pair.master.try_clone_reader().expect("its output");
        let keys = pair.master.take_writer().expect("its keyboard");
        let shown = Shown { parser: vt100::Parser::new(rows, cols, 0), written: Vec::new() };
        let screen = Arc::new(Screen { shown: Mutex::new(shown), changed: Condvar::new() });
        let writing = Arc::clone(&screen);
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            // Ends with an error when the program does.
            while let Ok(read @ 1..) = output.read(&mut bytes) {
                let mut shown = writing.shown.lock().expect("the screen");
                shown.parser.process(&bytes[..read]);
                shown.written.extend_from_slice(&bytes[..read]);
                writing.changed.notify_all();
            }
        });
        Self { child, keys, screen, _master: pair.master }
    }

    /// Presses keys.
    pub fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("keys");
        self.keys.flush().expect("keys");
    }

    /// Types a line, waits for the next prompt, and returns what the screen shows then.
    pub fn enter(&mut self, line: &str) -> String {
        self.press_until_prompt(&format!("{line}\r"))
    }

    /// Presses keys, waits for the next prompt, and returns what the screen shows then.
    pub fn press_until_prompt(&mut self, keys: &str) -> String {
        let before = self.screen.shown.lock().expect("the screen").prompts();
        self.press(keys);
        self.wait("the next prompt", |shown| shown.prompts() > before && shown.text().ends_with("hyp>"))
    }

    /// Waits until the screen shows a text, and returns what it shows then.
    pub fn sees(&self, text: &str) -> String {
        self.wait(text, |shown| shown.text().contains(text))
    }

    /// Waits until the screen ends with a text, blanks aside, and returns what it shows then.
    pub fn ends_with(&self, text: &str) -> String {
        self.wait(text, |shown| shown.text().ends_with(text))
    }

    fn wait(&self, what: &str, wanted: impl Fn(&Shown) -> bool) -> String {
        let deadline = Instant::now() + PATIENCE;
        let mut shown = self.screen.shown.lock().expect("the screen");
        while !wanted(&shown) {
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "waited in vain for {what:?}; the screen shows:\n{}", shown.text());
            shown = self.screen.changed.wait_timeout(shown, left).expect("the screen").0;
        }
        shown.text()
    }

    /// Waits until the program ends; its exit status.
    pub fn ends(mut self) -> u32 {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().expect("a status") {
                return status.exit_code();
            }
            assert!(Instant::now() < deadline, "the program does not end");
            thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It has ended already where the test has waited for that.
        let _ = self.child.kill();
    }
}
