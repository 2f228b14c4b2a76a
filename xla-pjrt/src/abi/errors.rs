//! Argument structures of error, event and plugin functions, and named values.

use super::kinds::Event;
use crate::ffi::{Address, Failed, Flag, Handle, List, OnReady, Out, Owned, Text, Visitor, Word, args};

args! {
    "PJRT_Error_Destroy" ErrorDestroyArgs 24 {
        16 error: Owned<Failed>,
    }
    "PJRT_Error_Message" ErrorMessageArgs 40 {
        16 error: Handle<Failed>,
        24 message: Out<Text>,
    }
    "PJRT_Error_GetCode" ErrorGetCodeArgs 28 {
        16 error: Handle<Failed>,
        24 code: Out<i32>,
    }
    "PJRT_Error_ForEachPayload" ErrorForEachPayloadArgs 40 {
        16 error: Handle<Failed>,
        24 visitor: Visitor,
        32 user_arg: Address,
    }
    "PJRT_NamedValue" NamedValue 56 {
        16 name: Text,
        32 value_type: i32,
        40 value: Word,
        48 value_size: usize,
    }
    "PJRT_Plugin_Initialize" PluginInitializeArgs 16 {}
    "PJRT_Plugin_Attributes" PluginAttributesArgs 32 {
        16 attributes: Out<List<NamedValue>>,
    }
    "PJRT_Event_Destroy" EventDestroyArgs 24 {
        16 event: Owned<Event>,
    }
    "PJRT_Event_IsReady" EventIsReadyArgs 25 {
        16 event: Handle<Event>,
        24 is_ready: Out<Flag>,
    }
    "PJRT_Event_Error" EventErrorArgs 24 {
        16 event: Handle<Event>,
    }
    "PJRT_Event_Await" EventAwaitArgs 24 {
        16 event: Handle<Event>,
    }
    "PJRT_Event_OnReady" EventOnReadyArgs 40 {
        16 event: Handle<Event>,
        24 callback: OnReady,
        32 user_arg: Address,
    }
    "PJRT_Event_Create" EventCreateArgs 24 {
        16 event: Out<Handle<Event>>,
    }
    "PJRT_Event_Set" EventSetArgs 48 {
        16 event: Handle<Event>,
        24 error_code: i32,
        32 error_message: Text,
    }
}
