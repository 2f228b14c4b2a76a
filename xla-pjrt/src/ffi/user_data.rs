//! User data: pointers that callers attach to objects, and the function table for this.
#![expect(unsafe_code, reason = "functions that C calls with pointers")]

use std::ptr;
use std::sync::{Mutex, PoisonError};

use super::callback::Receiver;
use super::field::Field;
use super::handle::{Handle, Kind};
use super::pointer::Address;

/// User data of an object, by keys that are addresses. A list, because it has few entries and is read in every
/// execution.
#[derive(Default)]
pub(crate) struct UserData(Mutex<Vec<Attached>>);

struct Attached {
    key: usize,
    data: Address,
    destructor: Receiver,
}

impl UserData {
    /// Returns the data for a key, or null.
    pub fn get(&self, key: usize) -> Address {
        let entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        entries.iter().find(|entry| entry.key == key).map_or(Address::NULL, |entry| entry.data)
    }

    /// Attaches data to a key and destroys the previous data.
    pub fn set(&self, key: usize, data: Address, destructor: Receiver) {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = entries.iter().position(|entry| entry.key == key).map(|place| entries.swap_remove(place));
        entries.push(Attached { key, data, destructor });
        // The lock is released first because a destructor may call the C API again.
        drop(entries);
        if let Some(before) = before {
            before.destructor.call(before.data);
        }
    }
}

impl Drop for UserData {
    fn drop(&mut self) {
        let entries = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(entries).into_iter().for_each(|entry| entry.destructor.call(entry.data));
    }
}

/// Object to which callers can attach data.
pub(crate) trait HasUserData {
    /// Returns the user data of the object.
    fn user_data(&self) -> &UserData;
}

/// `PJRT_Memory_FunctionTable`: 40 bytes.
#[repr(C)]
struct UserDataTable {
    struct_size: usize,
    extensions: usize,
    instance_size: usize,
    get: unsafe extern "C" fn(*mut (), *const u8) -> Address,
    set: unsafe extern "C" fn(*mut (), *const u8, Address, Receiver),
}

const _: () = assert!(size_of::<UserDataTable>() == 40);

struct TableOf<K>(K);

impl<K: Kind<Value: HasUserData>> TableOf<K> {
    const TABLE: &'static UserDataTable = &UserDataTable {
        struct_size: size_of::<UserDataTable>(),
        extensions: 0,
        instance_size: size_of::<*const ()>(),
        get: get::<K>,
        set: set::<K>,
    };
}

/// Returns the function table that objects of this kind start with.
pub(crate) const fn user_data_table<K: Kind<Value: HasUserData>>() -> *const () {
    ptr::from_ref(TableOf::<K>::TABLE).cast()
}

/// # Safety
///
/// `object` is null or a living object of this crate.
unsafe extern "C" fn get<K: Kind<Value: HasUserData>>(object: *mut (), key: *const u8) -> Address {
    let object = Handle::<K>::from_c(object);
    object.get().map_or(Address::NULL, |value| value.user_data().get(key.addr()))
}

/// # Safety
///
/// `object` is null or a living object of this crate.
unsafe extern "C" fn set<K: Kind<Value: HasUserData>>(
    object: *mut (),
    key: *const u8,
    data: Address,
    destructor: Receiver,
) {
    if let Ok(value) = Handle::<K>::from_c(object).get() {
        value.user_data().set(key.addr(), data, destructor);
    }
}
