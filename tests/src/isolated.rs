//! Isolated workers: if a process crashes or hangs, that is a finding, and a new process is started.

use std::collections::VecDeque;
use std::fmt;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::differential::{Failure, FailureKind};
use crate::program::Program;
use crate::worker::{Reply, Request};

/// Number of lines of a worker's standard error that are kept.
const LAST_WORDS: usize = 20;

/// Worker of a thread; it is replaced when it dies.
pub struct Isolated {
    command: Vec<String>,
    patience: Duration,
    worker: Option<Worker>,
}

struct Worker {
    child: Child,
    requests: ChildStdin,
    replies: Receiver<String>,
    last_words: Arc<Mutex<VecDeque<String>>>,
    listener: Option<JoinHandle<()>>,
}

impl Isolated {
    /// Creates a worker slot for a command; `patience` is the time limit of a request.
    pub fn new(command: Vec<String>, patience: Duration) -> Isolated {
        Isolated { command, patience, worker: None }
    }

    /// Sends a request and returns the worker's reply, each a line of JSON. If there is no reply, returns
    /// [`FailureKind::Crash`] or [`FailureKind::Hang`], and the next request starts a new worker. Returns an error if
    /// no worker can be started.
    pub fn exchange<R: DeserializeOwned>(&mut self, request: &impl Serialize) -> std::io::Result<Result<R, Failure>> {
        let line = serde_json::to_string(request)?;
        let worker = match self.worker.take() {
            Some(worker) => self.worker.insert(worker),
            None => self.worker.insert(Worker::start(&self.command)?),
        };
        // If the worker is dead, the write fails; the missing reply is handled below.
        let _ = writeln!(worker.requests, "{line}").and_then(|()| worker.requests.flush());
        let answer = worker.replies.recv_timeout(self.patience);
        if let Ok(answer) = &answer
            && let Ok(reply) = serde_json::from_str(answer)
        {
            return Ok(Ok(reply));
        }
        let (kind, message) = match answer {
            Err(RecvTimeoutError::Timeout) => {
                (FailureKind::Hang, format!("no answer within {} s", self.patience.as_secs()))
            }
            Ok(_) | Err(RecvTimeoutError::Disconnected) => (FailureKind::Crash, String::new()),
        };
        let end = self.end();
        let message = if message.is_empty() { end.to_string() } else { message };
        Ok(Err(Failure { kind, message }))
    }

    /// Sends a request for a check; a crash or hang becomes a reply.
    pub fn ask(&mut self, request: &Request) -> std::io::Result<Reply> {
        Ok(self.exchange(request)?.unwrap_or_else(Reply::Differ))
    }

    /// Checks a program in its text form, on one and two threads; `None` if it passes, or if it is invalid. The program
    /// is passed in a file in `folder`.
    pub fn failure(&mut self, program: &Program, folder: &Path) -> std::io::Result<Option<Failure>> {
        let path = folder.join(format!("candidate-{}-{:?}.hlo", std::process::id(), std::thread::current().id()));
        std::fs::write(&path, program.to_text())?;
        let reply = self.ask(&Request::File(path.clone()))?;
        std::fs::remove_file(&path)?;
        Ok(match reply {
            Reply::Differ(failure) => Some(failure),
            Reply::Agree(_) | Reply::Invalid(_) => None,
        })
    }

    /// Ends the worker, if there is one; the next request starts a new one.
    pub fn end(&mut self) -> End {
        self.worker.take().map_or_else(End::default, Worker::end)
    }
}

/// End of a worker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct End {
    /// Exit status.
    pub status: String,
    /// Last lines of standard error.
    pub words: String,
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let End { status, words } = self;
        if words.is_empty() { write!(f, "{status}") } else { write!(f, "{status}: {words}") }
    }
}

impl Drop for Isolated {
    fn drop(&mut self) {
        self.end();
    }
}

impl Worker {
    fn start(command: &[String]) -> std::io::Result<Worker> {
        let [program, arguments @ ..] = command else {
            return Err(std::io::Error::other("there is no command that starts a worker"));
        };
        let mut command = Command::new(Path::new(program));
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let (Some(requests), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(std::io::Error::other("a worker without pipes"));
        };
        let (sender, replies) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let last_words = Arc::new(Mutex::new(VecDeque::new()));
        let heard = last_words.clone();
        let listener = std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                let mut heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
                heard.push_back(line);
                if heard.len() > LAST_WORDS {
                    heard.pop_front();
                }
            }
        });
        Ok(Worker { child, requests, replies, last_words, listener: Some(listener) })
    }

    /// Ends the process.
    fn end(mut self) -> End {
        drop(self.requests);
        // A worker that died has its own exit status; one that hangs is killed.
        let ended = match self.child.try_wait() {
            Ok(Some(status)) => Ok(status),
            _ => {
                std::thread::sleep(Duration::from_millis(20));
                // The process may have ended in the meantime, so an error is ignored.
                let _ = self.child.kill();
                self.child.wait()
            }
        };
        let _ = self.listener.take().map(JoinHandle::join);
        let words = self.last_words.lock().unwrap_or_else(PoisonError::into_inner);
        let words: Vec<&str> = words.iter().map(String::as_str).filter(|line| !line.trim().is_empty()).collect();
        let status = ended.map_or_else(|error| error.to_string(), |status| status.to_string());
        End { status, words: words.join("\n") }
    }
}
