//! Objects that C holds by pointer.
#![expect(unsafe_code, reason = "objects cross the border as pointers")]

use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};

use super::field::Field;
use crate::status::Status;

/// One kind of object of the C API.
pub(crate) trait Kind: 'static {
    /// The object in Rust.
    type Value: Send + Sync + 'static;
    /// The name that callers know: `PJRT_Buffer`.
    const NAME: &'static str;
    /// The table of functions that the first field of the object points to, for kinds that the C API defines so.
    const TABLE: *const () = ptr::null();
}

/// An object as it lies in memory.
#[repr(C)]
struct Object<K: Kind> {
    /// The table of functions, or null.
    table: *const (),
    /// [`Object::TAG`] while the object lives.
    tag: AtomicU64,
    value: K::Value,
}

impl<K: Kind> Object<K> {
    /// A number for each kind, by which an object of another kind, or one that was destroyed, is found out where
    /// memory allows it: the C API itself does not promise that much.
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

    /// The object of a pointer that C handed in.
    ///
    /// # Safety
    ///
    /// `pointer` is null, or [`Object::boxed`] returned it for this or another kind, and it lives during `'a`.
    unsafe fn check<'a>(pointer: *mut Object<K>) -> Result<&'a Object<K>, Status> {
        if pointer.is_null() {
            return Err(Status::invalid_argument(format!("a {} must not be null", K::NAME)));
        }
        // SAFETY: objects of all kinds begin with table and tag.
        let tag = unsafe { &*ptr::addr_of!((*pointer).tag) }.load(Ordering::Relaxed);
        if tag != Self::TAG {
            return Err(Status::invalid_argument(format!("the pointer given is no {}, or no longer one", K::NAME)));
        }
        // SAFETY: the tag is that of this kind, so the rest is a value of it.
        Ok(unsafe { &*pointer })
    }

    /// Ends an object.
    ///
    /// # Safety
    ///
    /// `pointer` came from [`Object::boxed`] of this kind, and nobody uses it any more.
    unsafe fn free(pointer: NonNull<Object<K>>) {
        // SAFETY: as above.
        let object = unsafe { Box::from_raw(pointer.as_ptr()) };
        object.tag.store(0, Ordering::Relaxed);
    }
}

/// A pointer to an object, or null. It is dereferenced only during the call in which C handed it in, for which C
/// promises that it lives.
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

// SAFETY: a handle alone is an address; the objects are Send and Sync.
unsafe impl<K> Send for Handle<K> {}
// SAFETY: as above.
unsafe impl<K> Sync for Handle<K> {}

impl<K> Handle<K> {
    /// Whether there is no object.
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// A handle that C passes outside of a structure.
    pub(super) fn from_c(pointer: *mut ()) -> Handle<K> {
        Handle(pointer, PhantomData)
    }

    /// The address of the object.
    pub(super) fn address(self) -> *mut () {
        self.0
    }
}

impl<K: Kind> Handle<K> {
    /// Makes an object for C, which will give it back as [`Owned`].
    pub fn new(value: K::Value) -> Handle<K> {
        Handle(Object::<K>::boxed(value).as_ptr().cast(), PhantomData)
    }

    /// The object. An error for null and for an object of another kind.
    pub fn get(&self) -> Result<&K::Value, Status> {
        // SAFETY: handles that are dereferenced came from C in this call: null, or made by `new` or `Hosted::new` and
        // alive until the call returns.
        unsafe { Object::<K>::check(self.0.cast()) }.map(|object| &object.value)
    }
}

/// A pointer by which C gives an object back.
#[repr(transparent)]
pub(crate) struct Owned<K>(Handle<K>);

impl<K> Field for Owned<K> {
    const NULL: Owned<K> = Owned(Handle::NULL);
}

impl<K: Kind> Owned<K> {
    /// The object, before it is destroyed.
    pub fn value(&self) -> Result<&K::Value, Status> {
        self.0.get()
    }

    /// Ends the object. Null is fine, as in most destructors.
    pub fn destroy(&self) -> Result<(), Status> {
        let Some(pointer) = NonNull::new(self.0.0.cast::<Object<K>>()) else { return Ok(()) };
        self.0.get()?;
        // SAFETY: an object of this kind, and C promises that it gives each back once, when nobody uses it any more.
        unsafe { Object::free(pointer) };
        Ok(())
    }
}

/// The function that destroys an object, for deleters that C is handed.
///
/// # Safety
///
/// `pointer` is null or an object of kind `K` that nobody uses any more.
pub(super) unsafe extern "C" fn delete<K: Kind>(pointer: *mut ()) {
    // An object of another kind is left alone, since a deleter cannot report an error.
    drop(Owned::<K>(Handle(pointer, PhantomData)).destroy());
}

/// An object that another one holds: C borrows it.
pub(crate) struct Hosted<K: Kind>(NonNull<Object<K>>);

// SAFETY: it owns an object that is Send and Sync.
unsafe impl<K: Kind> Send for Hosted<K> {}
// SAFETY: as above.
unsafe impl<K: Kind> Sync for Hosted<K> {}

impl<K: Kind> Hosted<K> {
    /// Makes an object.
    pub fn new(value: K::Value) -> Hosted<K> {
        Hosted(Object::boxed(value))
    }

    /// The pointer for C.
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
        // SAFETY: it came from `boxed`, and the owner goes now.
        unsafe { Object::free(self.0) };
    }
}
