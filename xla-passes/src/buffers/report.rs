//! Human-readable report: allocations, the peak, and the live range of each value.

use std::fmt;

use super::types::{AllocationKind, BufferAssignment, LiveValue};

/// Prints the report that `--dump-to` writes. Steps are numbered from 0. A value's steps are the step that writes it
/// and the last step that reads it.
impl fmt::Display for BufferAssignment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "buffers of {}: {} temporary bytes, {} allocations, {} values, {} steps",
            self.module_name,
            self.temp_bytes(),
            self.allocations.len(),
            self.values.len(),
            self.steps.len()
        )?;
        self.write_allocations(f)?;
        self.write_peak(f)?;
        self.write_values(f)?;
        writeln!(f, "\nsteps")?;
        for (i, name) in self.step_names.iter().enumerate() {
            writeln!(f, "  {i:>4}  {name}")?;
        }
        Ok(())
    }
}

impl BufferAssignment {
    fn write_allocations(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\nallocations")?;
        for allocation in &self.allocations {
            write!(f, "  {:<4} {:>10} B  ", allocation.id.to_string(), allocation.size)?;
            match &allocation.kind {
                AllocationKind::Parameter { leaf, output, written } => {
                    write!(f, "parameter {}{}", leaf.parameter, Path(&leaf.path))?;
                    if let Some(path) = output {
                        write!(f, ", output {}", Path(path))?;
                    } else if *written {
                        f.write_str(", written")?;
                    }
                }
                AllocationKind::Output { path } => write!(f, "output {}", Path(path))?,
                AllocationKind::Constant { value } => {
                    let name = self.values.iter().find(|v| v.value == *value).map_or("", |v| &*v.name);
                    write!(f, "constant {name}")?;
                }
                AllocationKind::Temporary => f.write_str("temporary")?,
            }
            if allocation.memory_space != 0 {
                write!(f, ", memory space {}", allocation.memory_space)?;
            }
            writeln!(f)?;
        }
        Ok(())
    }

    fn write_peak(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let peak = &self.peak;
        let name = self.step_names.get(peak.step).map_or("", |n| &**n);
        writeln!(f, "\npeak: {} temporary bytes are needed at step {} ({name})", peak.bytes, peak.step)?;
        for value in peak.values.iter().filter_map(|&i| self.values.get(i)) {
            writeln!(f, "  {:>10} B  {}, steps {}-{}", value.slice.size, value.name, value.from, value.until)?;
        }
        Ok(())
    }

    fn write_values(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\nvalues")?;
        for LiveValue { name, slice, from, until, .. } in &self.values {
            let steps = format!("{from}-{until}");
            let place = format!("{}[{}..{}]", slice.allocation, slice.offset, slice.offset.saturating_add(slice.size));
            writeln!(f, "  {steps:>9}  {place:<20}  {name}")?;
        }
        Ok(())
    }
}

/// A path in text form: `{0,1}`, or `{}` for the whole value.
struct Path<'a>(&'a [usize]);

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inside: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        write!(f, "{{{}}}", inside.join(","))
    }
}
