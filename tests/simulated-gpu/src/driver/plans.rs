//! Planned failures of kernels: an illegal address, which makes the device unusable, or a kernel that never ends.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::handle::{Failure, tell};
use super::status::Status;

/// Kind of a planned failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanKind {
    /// Access outside of all allocations.
    Fault,
    /// Kernel that does not end.
    Endless,
}

/// Planned failure: takes effect at a given launch of the kernels whose name contains a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Kind of the failure.
    pub kind: PlanKind,
    /// Part of the kernel's name.
    pub kernel: String,
    /// Number of the launch, counted from 1.
    pub launch: u64,
}

impl Plan {
    /// Parses `KERNEL` or `KERNEL:N`.
    pub fn parse(kind: PlanKind, text: &str) -> Option<Plan> {
        let (kernel, launch) = match text.split_once(':') {
            Some((kernel, number)) => (kernel, number.parse().ok().filter(|number| *number > 0)?),
            None => (text, 1),
        };
        (!kernel.is_empty()).then(|| Plan { kind, kernel: kernel.to_owned(), launch })
    }

    /// Creates a marker file in the folder; false if another process has created it before.
    fn is_first(&self, once: Option<&Path>) -> bool {
        let mark = |folder: &Path| {
            // Kernel names are symbols, so a text that contains `/` matches no launch.
            let name = format!("{}-{}-{}", self.kind.name(), self.kernel.replace('/', "_"), self.launch);
            std::fs::File::create_new(folder.join(name)).is_ok()
        };
        once.is_none_or(mark)
    }
}

impl PlanKind {
    /// Returns the name of the option.
    pub fn name(self) -> &'static str {
        match self {
            PlanKind::Fault => "fault",
            PlanKind::Endless => "endless",
        }
    }
}

/// Plans, with the number of matching launches so far.
#[derive(Debug, Default)]
pub(crate) struct Plans {
    plans: Vec<(Plan, u64)>,
    /// Folder of marker files: a failure that occurred in one process occurs in no other.
    once: Option<PathBuf>,
}

impl Plans {
    pub fn new(plans: &[Plan], once: Option<PathBuf>) -> Plans {
        Plans { plans: plans.iter().map(|plan| (plan.clone(), 0)).collect(), once }
    }

    /// Counts a launch of a kernel. A planned fault returns an error; a planned endless kernel never returns.
    pub fn launch(&mut self, kernel: &str) -> Result<(), Failure> {
        for (plan, count) in &mut self.plans {
            if !kernel.contains(&plan.kernel) {
                continue;
            }
            *count += 1;
            if *count != plan.launch || !plan.is_first(self.once.as_deref()) {
                continue;
            }
            match plan.kind {
                PlanKind::Fault => {
                    let message = format!("kernel {kernel}, launch {count}: an illegal address, as planned");
                    return Err((Status::ILLEGAL_ADDRESS, message));
                }
                PlanKind::Endless => {
                    tell(&format!("kernel {kernel}, launch {count}: it does not end, as planned"));
                    // Threads that wait for the device wait until the process is killed; sleeping keeps no processor
                    // busy.
                    loop {
                        std::thread::sleep(Duration::from_secs(3600));
                    }
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_comes_at_its_launch() {
        let plan = Plan::parse(PlanKind::Fault, "add:2").unwrap();
        assert_eq!(plan, Plan { kind: PlanKind::Fault, kernel: "add".to_owned(), launch: 2 });
        let mut plans = Plans::new(&[plan], None);
        let mut launch = |kernel| plans.launch(kernel).map_err(|(status, _)| status);
        assert_eq!(launch("k0_add"), Ok(()));
        assert_eq!(launch("k0_multiply"), Ok(()));
        assert_eq!(launch("k1_add_f32"), Err(Status::ILLEGAL_ADDRESS));
        assert_eq!(launch("k0_add"), Ok(()));
    }

    #[test]
    fn a_folder_of_marks_makes_it_happen_once() {
        let folder = std::env::temp_dir().join(format!("simulated-gpu-plans-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let plan = Plan::parse(PlanKind::Fault, "add").unwrap();
        let of_a_process = || Plans::new(std::slice::from_ref(&plan), Some(folder.clone())).launch("add").is_err();
        assert_eq!([of_a_process(), of_a_process()], [true, false]);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn plans_are_read() {
        let first = Plan::parse(PlanKind::Endless, "add").unwrap();
        assert_eq!((first.kernel.as_str(), first.launch), ("add", 1));
        for bad in ["", ":2", "add:0", "add:x"] {
            assert_eq!(Plan::parse(PlanKind::Fault, bad), None, "{bad}");
        }
    }
}
