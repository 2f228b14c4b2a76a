"""Calls two PJRT plugins slot by slot in the same scenario and prints where their answers differ.

    python compare.py OURS.so THEIRS.so [--all]

Structures are bytes with fields at offsets, as in `tests/capi`; names and sizes of functions are in `data/slots.txt`.
"""

import ctypes
import pathlib
import sys

DATA = pathlib.Path(__file__).parent / "data"
SLOTS = [line.split() for line in (DATA / "slots.txt").read_text().splitlines()]
SIZES = {name: int(size) for name, size in SLOTS}
OPTIONS = (DATA / "one_device.compile_options.pb").read_bytes()
ADD = b"""module @add {
func.func public @main(%arg0: tensor<3xf32>, %arg1: tensor<3xf32>) -> tensor<3xf32> {
  %0 = stablehlo.add %arg0, %arg1 : tensor<3xf32>
  return %0 : tensor<3xf32>
}
}"""
F32 = 11


def read(address, size=8):
    return int.from_bytes(ctypes.string_at(address, size), "little")


def text(start, size):
    return ctypes.string_at(start, size) if start else b""


class Failure(Exception):
    pass


class Args:
    """A structure: `put` writes a field, indexing reads eight bytes of one."""

    def __init__(self, size):
        self.memory, self.kept = bytearray(256), []
        self.put(0, size)

    def put(self, offset, value, size=8):
        self.memory[offset : offset + size] = (value % (1 << 8 * size)).to_bytes(size, "little")
        return self

    def put_bytes(self, offset, data, count=None):
        buffer = ctypes.create_string_buffer(data, len(data) + 8)
        self.kept.append(buffer)
        return self.put(offset, ctypes.addressof(buffer)).put(offset + 8, len(data) if count is None else count)

    def put_words(self, offset, words):
        return self.put_bytes(offset, b"".join(w.to_bytes(8, "little", signed=True) for w in words), len(words))

    def __getitem__(self, offset):
        return int.from_bytes(self.memory[offset : offset + 8], "little")

    def flag(self, offset):
        return bool(self.memory[offset])

    def number(self, offset):
        return int.from_bytes(self.memory[offset : offset + 4], "little", signed=True)

    def text(self, offset):
        return text(self[offset], self[offset + 8])

    def words(self, start, count):
        return [read(self[start] + 8 * i) for i in range(self[count])]


class Plugin:
    def __init__(self, path):
        library = ctypes.CDLL(path)
        library.GetPjrtApi.restype = ctypes.c_void_p
        self.table = library.GetPjrtApi()
        self.seen = {}

    def raw(self, name, args):
        index = [slot for slot, _ in SLOTS].index(name)
        function = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(read(self.table + 40 + 8 * index))
        place = (ctypes.c_char * len(args.memory)).from_buffer(args.memory)
        return function(ctypes.addressof(place)) if name not in ("Error_Message", "Error_Destroy") else function(
            ctypes.addressof(place)
        ) and None

    def call(self, name, fill=lambda args: args):
        args = fill(Args(SIZES[name]))
        error = self.raw(name, args)
        if error:
            code, message = Args(28).put(16, error), Args(40).put(16, error)
            self.raw("Error_GetCode", code)
            self.raw("Error_Message", message)
            shown = f"error {code.number(24)}: {message.text(24).decode()[:200]}"
            self.raw("Error_Destroy", Args(24).put(16, error))
            raise Failure(shown)
        return args

    def of(self, name, handle):
        return self.call(name, lambda args: args.put(16, handle))

    def see(self, what, ask):
        try:
            self.seen[what] = ask()
        except Failure as failure:
            self.seen[what] = str(failure)

    def fetch(self, buffer, size):
        target = ctypes.create_string_buffer(size)
        fill = lambda args: args.put(16, buffer).put(32, ctypes.addressof(target)).put(40, size)
        event = self.call("Buffer_ToHostBuffer", fill)[48]
        self.of("Event_Await", event)
        return target.raw

    def buffer(self, client, device, values, dims=(3,), ty=F32):
        data = ctypes.create_string_buffer(values, len(values) + 8)
        self.keep = getattr(self, "keep", []) + [data]
        fill = lambda args: (
            args.put(16, client).put(24, ctypes.addressof(data)).put(32, ty, 4).put_words(40, dims).put(80, device)
        )
        return self.call("Client_BufferFromHostBuffer", fill)[112]

    def compile(self, client, code=ADD, form=b"mlir", options=OPTIONS):
        program = Args(48).put_bytes(16, code).put_bytes(32, form)
        place = (ctypes.c_char * 256).from_buffer(program.memory)
        fill = lambda args: args.put(16, client).put(24, ctypes.addressof(place)).put_bytes(32, options)
        return self.call("Client_Compile", fill)[48]

    def execute(self, program, arguments):
        pointers = lambda values: (ctypes.c_uint64 * len(values))(*values)
        options = Args(144)
        place = (ctypes.c_char * 256).from_buffer(options.memory)
        inputs, outputs, events = pointers(arguments), pointers([0]), pointers([0])
        lists, results = pointers([ctypes.addressof(inputs)]), pointers([ctypes.addressof(outputs)])
        fill = lambda args: (
            args.put(16, program).put(24, ctypes.addressof(place)).put(32, ctypes.addressof(lists)).put(40, 1)
            .put(48, len(arguments)).put(56, ctypes.addressof(results)).put(64, ctypes.addressof(events))
        )
        self.call("LoadedExecutable_Execute", fill)
        self.of("Event_Await", events[0])
        return outputs[0]


def named(start, count):
    return {text(read(start + 56 * i + 16), read(start + 56 * i + 24)).decode() for i in range(count)}


def scenario(plugin):
    extension, found = read(plugin.table + 8), []
    while extension:
        found.append((read(extension + 8, 4), read(extension)))
        extension = read(extension + 16)
    plugin.seen["extensions"] = sorted(found)
    plugin.call("Plugin_Initialize")
    args = plugin.call("Plugin_Attributes")
    plugin.seen["Plugin_Attributes"] = sorted(named(args[24], args[32]))
    client = plugin.call("Client_Create")[64]
    for name, offset in [("PlatformName", 24)]:
        plugin.see(f"Client_{name}", lambda: plugin.of(f"Client_{name}", client).text(offset))
    devices = plugin.of("Client_Devices", client).words(24, 32)
    plugin.seen["Client_Devices"] = len(devices)
    describe_devices(plugin, client, devices)
    describe_buffers(plugin, client, devices[0])
    describe_events(plugin)
    describe_programs(plugin, client, devices[0])
    describe_refusals(plugin, client, devices[0])


def describe_devices(plugin, client, devices):
    device = devices[0]
    description = plugin.of("Device_GetDescription", device)[24]
    for name in ["Kind", "DebugString", "ToString"]:
        plugin.see(f"DeviceDescription_{name}", lambda: plugin.of(f"DeviceDescription_{name}", description).text(24))
    plugin.see("Device_LocalHardwareId", lambda: plugin.of("Device_LocalHardwareId", device).number(24))
    plugin.see("Device_MemoryStats", lambda: plugin.of("Device_MemoryStats", device).flag(40))
    plugin.see("Device_ClearMemoryStats", lambda: bool(plugin.of("Device_ClearMemoryStats", device)))
    attributes = plugin.of("DeviceDescription_Attributes", description)
    plugin.seen["DeviceDescription_Attributes"] = sorted(named(attributes[32], attributes[24]))
    for i, memory in enumerate(plugin.of("Device_AddressableMemories", device).words(24, 32)):
        for name in ["Kind", "DebugString", "ToString"]:
            plugin.see(f"Memory_{name} {i}", lambda: plugin.of(f"Memory_{name}", memory).text(24))
        plugin.see(f"Memory_Id {i}", lambda: plugin.of("Memory_Id", memory).number(24))
    topology = plugin.of("Client_TopologyDescription", client)[24]
    plugin.see("TopologyDescription_PlatformName", lambda: plugin.of("TopologyDescription_PlatformName", topology).text(24))
    plugin.see("TopologyDescription_Serialize", lambda: plugin.of("TopologyDescription_Serialize", topology)[32] > 0)
    plugin.see("TopologyDescription_Fingerprint", lambda: plugin.of("TopologyDescription_Fingerprint", topology)[24] != 0)
    kinds = "TopologyDescription_GetMemorySpaceKindIds"
    plugin.see(kinds, lambda: plugin.of(kinds, topology)[32])
    tracking = lambda: bool(plugin.call("Device_CreateAsyncTrackingEvent", lambda a: a.put(16, device).put_bytes(24, b"x")))
    plugin.see("Device_CreateAsyncTrackingEvent", tracking)
    plugin.see("Client_DmaMap", lambda: bool(plugin.call("Client_DmaMap", lambda a: a.put(16, client).put(24, 4096).put(32, 64))))
    assignment = (ctypes.c_int32 * 4)()
    fill = lambda a: (
        a.put(16, client).put(24, 1, 4).put(28, 1, 4).put(32, 4).put(40, ctypes.addressof(assignment))
    )
    plugin.see("Client_DefaultDeviceAssignment", lambda: (bool(plugin.call("Client_DefaultDeviceAssignment", fill)), list(assignment)[:1]))


def describe_buffers(plugin, client, device):
    values = b"".join(bytes(ctypes.c_float(x)) for x in (1, 2, 3))
    buffer = plugin.buffer(client, device, values)
    for name, ask in {
        "ElementType": lambda a: a.number(24),
        "Dimensions": lambda a: a.words(24, 32),
        "UnpaddedDimensions": lambda a: a.words(24, 32),
        "DynamicDimensionIndices": lambda a: a[32],
        "GetMemoryLayout": lambda a: (a.number(24 + 72), [read(a[24 + 32])]),
        "OnDeviceSizeInBytes": lambda a: a[24],
        "IsOnCpu": lambda a: a.flag(24),
        "IsDeleted": lambda a: a.flag(24),
    }.items():
        plugin.see(f"Buffer_{name}", lambda: ask(plugin.of(f"Buffer_{name}", buffer)))
    plugin.see("Buffer_ToHostBuffer size", lambda: plugin.of("Buffer_ToHostBuffer", buffer)[40])
    plugin.see("Buffer_ToHostBuffer", lambda: plugin.fetch(buffer, 12))
    plugin.see("Buffer_ToHostBuffer short", lambda: plugin.fetch(buffer, 4))
    raw = lambda offset, size: plugin.call(
        "Buffer_CopyRawToHost",
        lambda a: a.put(16, buffer).put(24, ctypes.addressof(plugin.keep[0])).put(32, offset).put(40, size),
    ) and "fine"
    plugin.see("Buffer_CopyRawToHost beyond", lambda: raw(8, 8))
    plugin.see("Buffer_DecreaseExternalReferenceCount", lambda: bool(plugin.of("Buffer_DecreaseExternalReferenceCount", buffer)))
    plugin.see("Buffer_UnsafePointer", lambda: plugin.of("Buffer_UnsafePointer", buffer)[24] != 0)
    bitcast = lambda a: a.put(16, buffer).put(24, 4, 4).put_words(32, [3])
    plugin.see("Buffer_Bitcast", lambda: bool(plugin.call("Buffer_Bitcast", bitcast)))
    plugin.of("Buffer_Delete", buffer)
    plugin.see("Buffer_IsDeleted after", lambda: plugin.of("Buffer_IsDeleted", buffer).flag(24))
    plugin.see("Buffer_ToHostBuffer deleted", lambda: plugin.fetch(buffer, 12))
    plugin.see("Buffer_ReadyEvent deleted", lambda: bool(plugin.of("Event_Await", plugin.of("Buffer_ReadyEvent", buffer)[24])))
    plugin.see("Buffer_Dimensions deleted", lambda: plugin.of("Buffer_Dimensions", buffer).words(24, 32))


def describe_events(plugin):
    event = plugin.call("Event_Create")[16]
    plugin.see("Event_IsReady", lambda: plugin.of("Event_IsReady", event).flag(24))
    setting = lambda a: a.put(16, event).put(24, 5, 4).put_bytes(32, b"lost")
    plugin.see("Event_Set", lambda: bool(plugin.call("Event_Set", setting)))
    plugin.see("Event_Await", lambda: bool(plugin.of("Event_Await", event)))
    plugin.see("Event_Error", lambda: bool(plugin.of("Event_Error", event)))


def describe_programs(plugin, client, device):
    program = plugin.compile(client)
    executable = plugin.of("LoadedExecutable_GetExecutable", program)[24]
    one, three = bytes(ctypes.c_float(1)), b"".join(bytes(ctypes.c_float(x)) for x in (1, 2, 3))
    x = plugin.buffer(client, device, three)
    plugin.see("LoadedExecutable_Execute", lambda: plugin.fetch(plugin.execute(program, [x, x]), 12))
    plugin.see("execute one argument", lambda: plugin.execute(program, [x]) != 0)
    plugin.see("execute scalar", lambda: plugin.execute(program, [x, plugin.buffer(client, device, one, ())]) != 0)
    for name in ["NumReplicas", "NumPartitions", "NumOutputs"]:
        plugin.see(f"Executable_{name}", lambda: plugin.of(f"Executable_{name}", executable)[24])
    for name in ["Name"]:
        plugin.see(f"Executable_{name}", lambda: plugin.of(f"Executable_{name}", executable).text(24))
    plugin.see("Executable_Fingerprint", lambda: plugin.of("Executable_Fingerprint", executable)[32] > 0)
    code = "Executable_SizeOfGeneratedCodeInBytes"
    plugin.see(code, lambda: plugin.of(code, executable)[24] < 1 << 63)
    for name, ask in {
        "GetCostAnalysis": lambda a: sorted(named(a[32], a[24])),
        "GetCompiledMemoryStats": lambda a: [a[at] for at in (32, 40, 48, 56)],
        "OutputMemoryKinds": lambda a: text(read(a[32]), read(a[40])),
    }.items():
        plugin.see(f"Executable_{name}", lambda: ask(plugin.of(f"Executable_{name}", executable)))
    kinds = "Executable_ParameterMemoryKinds"
    plugin.see(kinds, lambda: plugin.of(kinds, executable)[24])
    plugin.see("Executable_OutputElementTypes", lambda: read(plugin.of("Executable_OutputElementTypes", executable)[24], 4))
    assignment = "LoadedExecutable_GetDeviceAssignment"
    plugin.see(assignment, lambda: plugin.of(assignment, program).text(24))
    logical = "LoadedExecutable_AddressableDeviceLogicalIds"
    plugin.see(logical, lambda: [read(plugin.of(logical, program)[24]), plugin.of(logical, program)[32]])
    plugin.see("Executable_Serialize", lambda: plugin.of("Executable_Serialize", executable)[32] > 0)
    plugin.see("Executable_GetCompileOptions", lambda: plugin.of("Executable_GetCompileOptions", executable)[32] > 0)
    plugin.of("LoadedExecutable_Delete", program)
    plugin.see("LoadedExecutable_IsDeleted", lambda: plugin.of("LoadedExecutable_IsDeleted", program).flag(24))
    plugin.see("execute deleted", lambda: plugin.execute(program, [x, x]) != 0)


def describe_refusals(plugin, client, device):
    plugin.see("Client_LookupDevice 99", lambda: bool(plugin.call("Client_LookupDevice", lambda a: a.put(16, client).put(24, 99, 4))))
    plugin.see("compile unknown format", lambda: bool(plugin.compile(client, form=b"pb")))
    plugin.see("compile no program", lambda: bool(plugin.compile(client, code=b"nonsense")))
    plugin.see("compile bad options", lambda: bool(plugin.compile(client, options=b"\xff" * 9)))
    key = b"\x3a\x0e\x0a\x07bad_key\x12\x03\x0a\x01x"
    plugin.see("compile unknown option", lambda: bool(plugin.compile(client, options=OPTIONS + key)))
    load = lambda a: a.put(16, client).put_bytes(24, b"nonsense")
    plugin.see("DeserializeAndLoad nonsense", lambda: bool(plugin.call("Executable_DeserializeAndLoad", load)))


def main(ours, theirs, *flags):
    plugins = [Plugin(path) for path in (ours, theirs)]
    for plugin in plugins:
        scenario(plugin)
    first, second = (plugin.seen for plugin in plugins)
    same = [what for what in first if first[what] == second.get(what)]
    print(f"{len(same)} of {len(first)} answers are the same")
    for what in first:
        if what not in same or "--all" in flags:
            print(f"{what}\n    ours:   {first[what]}\n    theirs: {second.get(what)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
