//! Work that was sent.

use std::sync::Arc;

use xla_service::collective::InstructionKey;

use super::communicators::Communicators;
use crate::cuda::stream::queue::QueueMark;

/// Collective in the stream of a device.
#[derive(Debug)]
pub(crate) struct Pending {
    pub instruction: Arc<InstructionKey>,
    pub clique: Arc<Communicators>,
    /// End of the work in the stream.
    pub end: Arc<QueueMark>,
}
