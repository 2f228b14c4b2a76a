//! Messages of the transport as bytes.

use xla_service::collective::processes::MessageId;

/// First message of a process to another: its introduction.
const HELLO: u8 = 1;
/// Message of the engine, complete.
const SHORT: u8 = 2;
/// Announcement of a message of the engine.
const LONG: u8 = 3;

/// Number of bytes before the contents of a short message.
const PREFIX: usize = 1 + MessageId::BYTES;

/// Message with the tag of announcements.
#[derive(Debug, PartialEq)]
pub(crate) enum Control {
    /// Introduction of the sender.
    Hello(Hello),
    /// Complete message.
    Short(MessageId, Vec<u8>),
    /// Message of this number of bytes, which follows.
    Long(MessageId, usize),
}

/// Introduction of a process.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Hello {
    /// Host and process id, in one line.
    pub location: String,
    /// Platform of the client.
    pub platform: String,
}

impl Hello {
    /// Returns the bytes of the message.
    pub fn to_bytes(&self) -> Vec<u8> {
        [&[HELLO], self.location.as_bytes(), b"\n", self.platform.as_bytes()].concat()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Hello> {
        let text = String::from_utf8_lossy(bytes);
        let (location, platform) = text.split_once('\n')?;
        Some(Hello { location: location.to_string(), platform: platform.to_string() })
    }
}

/// Returns the bytes of a short message.
pub(crate) fn short(id: MessageId, bytes: &[u8]) -> Vec<u8> {
    [&[SHORT], &id.to_bytes()[..], bytes].concat()
}

/// Returns the bytes of an announcement.
pub(crate) fn long(id: MessageId, bytes: usize) -> Vec<u8> {
    [&[LONG], &id.to_bytes()[..], &(bytes as u64).to_le_bytes()].concat()
}

/// Returns the message of these bytes; `None` if they are none.
pub(crate) fn decode(mut bytes: Vec<u8>) -> Option<Control> {
    let (kind, rest) = bytes.split_first()?;
    if *kind == HELLO {
        return Hello::from_bytes(rest).map(Control::Hello);
    }
    let (id, rest) = rest.split_first_chunk()?;
    let id = MessageId::from_bytes(id);
    match *kind {
        SHORT => {
            bytes.drain(..PREFIX);
            Some(Control::Short(id, bytes))
        }
        LONG => Some(Control::Long(id, usize::try_from(u64::from_le_bytes(rest.try_into().ok()?)).ok()?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_as_written_and_others_are_none() {
        let id = MessageId { run: 1, clique: u64::MAX, collective: 3, part: 4 };
        let hello = Hello { location: "pid 3 on a".into(), platform: "cpu".into() };
        let messages = [
            (hello.to_bytes(), Control::Hello(hello)),
            (short(id, b"abc"), Control::Short(id, b"abc".to_vec())),
            (short(id, b""), Control::Short(id, vec![])),
            (long(id, 1 << 40), Control::Long(id, 1 << 40)),
        ];
        for (bytes, message) in messages {
            assert_eq!(decode(bytes), Some(message));
        }
        let announcement = long(id, 7);
        assert!((0..announcement.len()).all(|length| decode(announcement[..length].to_vec()).is_none()));
        assert_eq!(decode([&[HELLO], &b"pid 3 on a"[..]].concat()), None);
        assert_eq!(decode([&[9], &announcement[1..]].concat()), None);
    }
}
