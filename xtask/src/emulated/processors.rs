//! AArch64 processors that QEMU emulates, and their entries in `/proc/cpuinfo`.

use anyhow::{Context, Result};

/// A processor. LLVM finds its name and features in `/proc/cpuinfo`, which is the host's in QEMU's emulation of
/// programs.
#[derive(Debug)]
pub struct Processor {
    /// Name on the command line.
    pub name: &'static str,
    /// QEMU's name of it, or of one that has all of its instructions.
    pub qemu: &'static str,
    /// Implementer and part number; LLVM derives the name of the processor from them.
    model: (&'static str, &'static str),
    /// Features as Linux names them.
    features: &'static str,
}

/// All processors, the usual one first.
pub const PROCESSORS: &[Processor] = &[
    // A model outside LLVM's list: code for the architecture's baseline, on a processor with all features.
    Processor { name: "aarch64", qemu: "max", model: ("0x00", "0x000"), features: "fp asimd" },
    Processor {
        name: "cortex-a53",
        qemu: "cortex-a53",
        model: ("0x41", "0xd03"),
        features: "fp asimd evtstrm aes pmull sha1 sha2 crc32 cpuid",
    },
    Processor {
        name: "neoverse-n1",
        qemu: "neoverse-n1",
        model: ("0x41", "0xd0c"),
        features: "fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm lrcpc dcpop asimddp",
    },
    // SVE, in registers of 512 bits.
    Processor {
        name: "a64fx",
        qemu: "a64fx",
        model: ("0x46", "0x001"),
        features: "fp asimd evtstrm sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm fcma dcpop sve",
    },
    // SVE2.
    Processor {
        name: "neoverse-v2",
        qemu: "max",
        model: ("0x41", "0xd4f"),
        features: "fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm jscvt fcma lrcpc dcpop sha3 \
                   asimddp sha512 sve asimdfhm dit uscat ilrcpc flagm sb paca pacg dcpodp sve2 sveaes svepmull svebitperm \
                   svesha3 svesm4 flagm2 frint svei8mm svebf16 i8mm bf16 rng bti",
    },
];

impl Processor {
    /// The processor of that name.
    pub fn find(name: &str) -> Result<&'static Processor> {
        let known = || PROCESSORS.iter().map(|processor| processor.name).collect::<Vec<_>>().join(", ");
        let found = PROCESSORS.iter().find(|processor| processor.name == name);
        found.with_context(|| format!("no processor is called '{name}'; there are {}", known()))
    }

    /// The text of `/proc/cpuinfo` on a machine with that many of them.
    pub fn cpuinfo(&self, count: usize) -> String {
        let (maker, part) = self.model;
        let one = |number| {
            format!(
                "processor\t: {number}\nFeatures\t: {}\nCPU implementer\t: {maker}\nCPU architecture: 8\n\
                 CPU variant\t: 0x0\nCPU part\t: {part}\nCPU revision\t: 1\n\n",
                self.features
            )
        };
        (0..count).map(one).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_found_by_name() {
        assert_eq!(Processor::find("a64fx").unwrap().qemu, "a64fx");
        let error = Processor::find("m1").unwrap_err().to_string();
        assert!(error.contains("'m1'; there are aarch64, cortex-a53"), "{error}");
    }

    #[test]
    fn linux_lists_each_of_them() {
        let text = Processor::find("cortex-a53").unwrap().cpuinfo(2);
        assert_eq!(text.matches("CPU part\t: 0xd03\n").count(), 2);
        assert!(text.starts_with("processor\t: 0\nFeatures\t: fp asimd "), "{text}");
        assert!(text.contains("\n\nprocessor\t: 1\n"), "{text}");
    }
}
