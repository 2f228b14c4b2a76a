//! Tests of the threads that run LLVM: their end by a panic, a fatal error or lack of memory is an error.

use xla_hlo::{Error, Result};
use xla_llvm::internals::own_thread::{CODE_STACK, fatal_error, run};

fn outcome(work: impl FnOnce() -> Result<()> + Send) -> Error {
    run(CODE_STACK, work, |reason| Error::unimplemented(reason.to_string())).unwrap_err()
}

#[test]
fn the_end_of_the_thread_is_an_error() {
    let borrowed = String::from("works on what it borrows");
    assert_eq!(run(CODE_STACK, || Ok(borrowed.as_str()), |_| unreachable!()).unwrap(), borrowed);
    assert!(matches!(outcome(|| panic!("on purpose")), Error::Internal { .. }));
    let fatal = outcome(|| {
        fatal_error(c"no such instruction\nand its graph");
        unreachable!("the thread sleeps")
    });
    assert_eq!(fatal.to_string(), Error::unimplemented("no such instruction").to_string());
    let out_of_memory = || {
        xla_hlo::out_of_memory::leave_thread();
        unreachable!("the thread sleeps")
    };
    assert!(matches!(outcome(out_of_memory), Error::ResourceExhausted { .. }));
    let no_string = || {
        let ptr = std::ptr::null::<u8>();
        assert!(!ptr.is_null());
        Ok(())
    };
    assert!(matches!(outcome(no_string), Error::ResourceExhausted { .. }));
    xla_hlo::out_of_memory::leave_thread();
}
