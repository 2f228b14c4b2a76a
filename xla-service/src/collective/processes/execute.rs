//! Execution of a collective: headers, operands, and then the tasks of the local members.
#![expect(unsafe_code, reason = "accesses the memory of members that wait for it")]

use std::sync::Arc;

use xla_hlo::{Error, Result};

use super::exchange::{Exchange, INLINE_BYTES};
use super::header::{self, Header};
use super::local_work::execute;
use super::operands::{Operands, Packed};
use super::route::Process;
use super::waiting::Waiting;
use crate::collective::in_process::{Access, MemberMemory, check_arguments};
use crate::collective::{MemberArguments, Operation};

impl Exchange<'_> {
    /// Executes the collective.
    ///
    /// # Safety
    ///
    /// All local members wait, and no other thread accesses their memory.
    pub unsafe fn run(&self) -> Result<()> {
        let local = self.all_memory(|_| MemberMemory::default());
        // SAFETY: the members wait, only this thread accesses their memory, and nothing is written during the life of
        // slices of operands: they are copied into messages at once.
        let access = unsafe { local.access() };
        let is_divided = self.is_divided();
        let packed = if is_divided { vec![] } else { self.pack(access)? };
        self.send_headers(&packed)?;
        let headers = self.receive_headers()?;
        let arguments = self.all_arguments(&headers)?;
        if is_divided {
            // SAFETY: as the caller guarantees.
            return unsafe { self.all_reduce(&arguments, access) };
        }
        self.send_packed(packed)?;
        let operands = self.receive_operands(headers, &arguments)?;
        let memory = self.all_memory(|rank| MemberMemory::remote(operands.of(rank)));
        // SAFETY: as above. The operands of other processes are borrowed until the end of this function. Each element
        // a result is written by one task, after the last read of an operand at its place.
        execute(self, &arguments, unsafe { memory.access() })
    }

    /// Whether processes divide the work of a reduction among them, instead of reducing all operands each.
    fn is_divided(&self) -> bool {
        matches!(self.spec.operation(), Operation::AllReduce(_))
            && self.spec.operand_bytes().sum::<usize>() > INLINE_BYTES
    }

    fn send_headers(&self, packed: &[Packed]) -> Result<()> {
        let mut last: Option<(&Packed, Arc<Vec<u8>>)> = None;
        for (i, process) in self.route.others().enumerate() {
            let operands = packed.get(i).and_then(Packed::inline);
            let header = match (&last, packed.get(i)) {
                (Some((other, header)), Some(own)) if own.is_same(other) => header.clone(),
                _ => Arc::new(header::encode(self.spec, self.arguments, operands)),
            };
            last = packed.get(i).map(|packed| (packed, header.clone()));
            self.send(process, 0, header)?;
        }
        Ok(())
    }

    /// Returns the headers of the other processes. Fails if one executes another collective.
    fn receive_headers(&self) -> Result<Vec<Header>> {
        let mut waiting = Waiting::new(self);
        let receive = |process: &Process| {
            let header = header::decode(waiting.receive(process, 0)?)
                .map_err(|error| error.context(self.route.hub.process(process.rank)))?;
            if header.digest != self.spec.identity().0 {
                return Err(self.differs(process, &header));
            }
            if header.arguments.len() != process.members.len() {
                let (sent, members) = (header.arguments.len(), process.members.len());
                return Err(Error::internal(format!("a process sent arguments of {sent} members, it has {members}")));
            }
            Ok(header)
        };
        self.route.others().map(receive).collect()
    }

    /// Returns the error of processes that execute different collectives. It is equal in both.
    fn differs(&self, process: &Process, header: &Header) -> Error {
        let own = &self.route.processes[self.route.own];
        let mut both = [(own, &self.spec.identity().1), (process, &header.text)];
        both.sort_by_key(|(process, _)| process.rank);
        let [first, second] =
            both.map(|(process, text)| format!("devices {}, execute {text}", self.route.describe(process)));
        Error::invalid_argument(format!("{first}, but {second}"))
    }

    /// Returns the arguments of all members, by rank.
    fn all_arguments(&self, headers: &[Header]) -> Result<Vec<MemberArguments>> {
        let mut all = vec![MemberArguments::None; self.spec.members()];
        let mut set = |process: &Process, arguments: &[MemberArguments]| {
            process.members.iter().zip(arguments).for_each(|(&rank, arguments)| all[rank] = arguments.clone());
        };
        set(&self.route.processes[self.route.own], self.arguments);
        self.route.others().zip(headers).for_each(|(process, header)| set(process, &header.arguments));
        check_arguments(self.spec, &all)?;
        Ok(all)
    }

    /// Packs the operands that the other processes need.
    fn pack(&self, access: Access<'_>) -> Result<Vec<Packed>> {
        let mut packed: Vec<Packed> = vec![];
        for process in self.route.others() {
            let next = match packed.last() {
                Some(last) if Packed::are_equal_for_all(self.spec) => last.clone(),
                _ => Packed::new(self, access, &process.members)?,
            };
            packed.push(next);
        }
        Ok(packed)
    }

    fn send_packed(&self, packed: Vec<Packed>) -> Result<()> {
        for (process, packed) in self.route.others().zip(packed) {
            for (piece, part) in packed.into_pieces().into_iter().zip(1..) {
                self.send(process, part, piece)?;
            }
        }
        Ok(())
    }

    fn receive_operands(&self, headers: Vec<Header>, arguments: &[MemberArguments]) -> Result<Operands> {
        let mut operands = Operands::new(self.spec.members());
        for (process, header) in self.route.others().zip(headers) {
            let mut part = 0;
            let next = || {
                part += 1;
                Waiting::new(self).receive(process, part)
            };
            operands.read(self, process, header.operands.unwrap_or_default(), arguments, next)?;
        }
        Ok(operands)
    }
}
