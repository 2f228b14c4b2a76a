//! Objects that C refers to by pointer.
#![expect(unsafe_code, reason = "objects cross the C API as pointers")]

use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};

use super::field::Field;
use crate::status::Status;

/// Kind of object in the C API.
pub(crate) trait Kind: 'static {
    /// Rust type of the object.
    type Value: Send + Sync + 'static;
    /// Name in the C API, such as `PJRT_Buffer`.
    const NAME: &'static str;
    /// Function table that the object's first field points to, for kinds that have one in the C API.
    const TABLE: *const () = ptr::null();
}

/// Memory layout of an object.
#[repr(C)]
struct Object<K: Kind> {
    /// Function table, or null.
    table: *const (),
    /// [`Object::TAG`] while the object is alive.
    tag: AtomicU64,
    value: K::Value,
}

impl<K: Kind> Object<K> {
    /// Tag of the kind. It detects objects of another kind and, as far as the freed memory still permits, destroyed
    /// objects. The C API does not require this check.
    const TAG: u64 = {
        let (mut hash, mut i) = (0xcbf2_9ce4_8422_2325_u64, 0);
        while i < K::NAME.len() {
            hash = (hash ^ K::NAME.as_bytes()[i] as u64).wrapping_mul(0x100_0000_01b3);
            i += 1;
        }
        hash
    };

    fn boxed(value: K::Value) -> NonNull<Object<K>> {
        NonNull::from(Box::leak(Box::new(Object { table: K::TABLE, tag: AtomicU64::new(Self::TAG), value })))
    }

    /// Converts a pointer from C to the object.
    ///
    /// # Safety
    ///
    /// `pointer` is null, or [`Object::boxed`] returned it for this or another kind, and the object is alive during
    /// `'a`.
    unsafe fn check<'a>(pointer: *mut Object<K>) -> Result<&'a Object<K>, Status> {
        if pointer.is_null() {
            return Err(Status::invalid_argument(format!("a {} must not be null", K::NAME)));
        }
        // SAFETY: objects of all kinds begin with table and tag.
        let tag = unsafe { &*ptr::addr_of!((*pointer).tag) }.load(Ordering::Relaxed);
        if tag != Self::TAG {
            return Err(Status::invalid_argument(format!(
                "the pointer is not a {}, or its object was destroyed",
                K::NAME
            )));
        }
        // SAFETY: the tag is that of this kind, so the rest is a value of this kind.
        Ok(unsafe { &*pointer })
    }

    /// Frees an object.
    ///
    /// # Safety
    ///
    /// `pointer` came from [`Object::boxed`] of this kind, and the object is no longer used.
    unsafe fn free(pointer: NonNull<Object<K>>) {
        // SAFETY: the caller of this function guarantees that `pointer` came from a box and is no longer used.
        let object = unsafe { Box::from_raw(pointer.as_ptr()) };
        object.tag.store(0, Ordering::Relaxed);
    }
}

/// Pointer to an object, or null. It is dereferenced only during the call in which C passed it; C promises that the
/// object is alive during that call.
#[repr(transparent)]
pub(crate) struct Handle<K>(*mut (), PhantomData<fn(K)>);

impl<K> Clone for Handle<K> {
    fn clone(&self) -> Handle<K> {
        *self
    }
}

impl<K> Copy for Handle<K> {}

impl<K> PartialEq for Handle<K> {
    fn eq(&self, other: &Handle<K>) -> bool {
        self.0 == other.0
    }
}

impl<K> Field for Handle<K> {
    const NULL: Handle<K> = Handle(ptr::null_mut(), PhantomData);
}

// SAFETY: a handle is only an address, and the objects are Send and Sync.
unsafe impl<K> Send for Handle<K> {}
// SAFETY: a handle is only an address, and the objects are Send and Sync.
unsafe impl<K> Sync for Handle<K> {}

impl<K> Handle<K> {
    /// Whether the handle is null.
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// Wraps a pointer that C passes outside of a structure.
    pub(super) fn from_c(pointer: *mut ()) -> Handle<K> {
        Handle(pointer, PhantomData)
    }

    /// Returns the address of the object.
    pub(super) fn address(self) -> *mut () {
        self.0
    }
}

impl<K: Kind> Handle<K> {
    /// Creates an object that C owns and returns as [`Owned`].
    pub fn new(value: K::Value) -> Handle<K> {
        Handle(Object::<K>::boxed(value).as_ptr().cast(), PhantomData)
    }

    /// Returns the object; an error for null and for an object of another kind.
    pub fn get(&self) -> Result<&K::Value, Status> {
        // SAFETY: handles that are dereferenced came from C in this call. They are null, or `new` or `Hosted::new`
        // created them and the object is alive until the call returns.
        unsafe { Object::<K>::check(self.0.cast()) }.map(|object| &object.value)
    }
}

/// Pointer with which C returns an object to be destroyed.
#[repr(transparent)]
pub(crate) struct Owned<K>(Handle<K>);

impl<K> Field for Owned<K> {
    const NULL: Owned<K> = Owned(Handle::NULL);
}

impl<K: Kind> Owned<K> {
    /// Whether the pointer is null.
    pub fn is_null(&self) -> bool {
        self.0.is_null()
    }

    /// Returns the object, before it is destroyed.
    pub fn value(&self) -> Result<&K::Value, Status> {
        self.0.get()
    }

    /// Destroys the object. Null is allowed, as in most destructors of the C API.
    pub fn destroy(&self) -> Result<(), Status> {
        let Some(pointer) = NonNull::new(self.0.0.cast::<Object<K>>()) else { return Ok(()) };
        self.0.get()?;
        // SAFETY: an object of this kind. C promises to return each object once, when it is no longer used.
        unsafe { Object::free(pointer) };
        Ok(())
    }
}

/// Destroys an object. C receives this function as a deleter.
///
/// # Safety
///
/// `pointer` is null or an object of kind `K` that is no longer used.
pub(super) unsafe extern "C" fn delete<K: Kind>(pointer: *mut ()) {
    // An object of another kind is ignored, because a deleter cannot report an error.
    drop(Owned::<K>(Handle(pointer, PhantomData)).destroy());
}

/// Object that another object owns and C borrows.
pub(crate) struct Hosted<K: Kind>(NonNull<Object<K>>);

// SAFETY: it owns an object that is Send and Sync.
unsafe impl<K: Kind> Send for Hosted<K> {}
// SAFETY: it owns an object that is Send and Sync.
unsafe impl<K: Kind> Sync for Hosted<K> {}

impl<K: Kind> Hosted<K> {
    /// Creates an object.
    pub fn new(value: K::Value) -> Hosted<K> {
        Hosted(Object::boxed(value))
    }

    /// Returns the pointer for C.
    pub fn handle(&self) -> Handle<K> {
        Handle(self.0.as_ptr().cast(), PhantomData)
    }
}

impl<K: Kind> Deref for Hosted<K> {
    type Target = K::Value;

    fn deref(&self) -> &K::Value {
        // SAFETY: the object lives until self is dropped.
        &unsafe { self.0.as_ref() }.value
    }
}

impl<K: Kind> Drop for Hosted<K> {
    fn drop(&mut self) {
        // SAFETY: the pointer came from `boxed`, and its only owner is being dropped.
        unsafe { Object::free(self.0) };
    }
}
