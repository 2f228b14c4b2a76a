//! Engine for the devices of several processes, over any transport of bytes.

mod transport;

pub use transport::{Inbox, Message, MessageId, Progress, Transport};
