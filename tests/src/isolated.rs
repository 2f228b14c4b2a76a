//! Isolated workers: a process that dies or hangs is a finding, and the next one is started.

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

/// Lines of a worker's standard error that are kept.
const LAST_WORDS: usize = 20;

/// The workers of one thread: one after the other, each until it dies.
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
    /// Workers that this command starts, each with so much time for a request.
    pub fn new(command: Vec<String>, patience: Duration) -> Isolated {
        Isolated { command, patience, worker: None }
    }

    /// The worker's reply to a request, both a line of JSON; [`FailureKind::Crash`] or [`FailureKind::Hang`] where
    /// there is none, after which the next request has a new worker. The error is that no worker can be started.
    pub fn exchange<R: DeserializeOwned>(&mut self, request: &impl Serialize) -> std::io::Result<Result<R, Failure>> {
        let line = serde_json::to_string(request)?;
        let worker = match self.worker.take() {
            Some(worker) => self.worker.insert(worker),
            None => self.worker.insert(Worker::start(&self.command)?),
        };
        // A worker that is gone cannot be written to; that shows when it does not answer.
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

    /// Reply of a worker that checks programs, with its death or its silence among the replies.
    pub fn ask(&mut self, request: &Request) -> std::io::Result<Reply> {
        Ok(self.exchange(request)?.unwrap_or_else(Reply::Differ))
    }

    /// Checks a program in its text form, on one and two threads; `None` if it passes, or if it is not a program. It is
    /// handed over in a file of that folder.
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

    /// Ends the worker, if there is one. The next request has a new one.
    pub fn end(&mut self) -> End {
        self.worker.take().map_or_else(End::default, Worker::end)
    }
}

/// End of a worker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct End {
    /// Its exit status.
    pub status: String,
    /// The last lines that it wrote to standard error.
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
        // A worker that died has its own status; one that hangs gets this one.
        let ended = match self.child.try_wait() {
            Ok(Some(status)) => Ok(status),
            _ => {
                std::thread::sleep(Duration::from_millis(20));
                // It may have ended meanwhile, which is as well.
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
