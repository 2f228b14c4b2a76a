// A compiled program in WebAssembly: memory for a call behind the module's own, arrays as typed arrays.

const arrays = { u8: Uint8Array, s8: Int8Array, s32: Int32Array, u32: Uint32Array, f32: Float32Array, f64: Float64Array };

export class Program {
  // `bytes` is the linked module, `description` what the compiler wrote to NAME.json, of one program.
  static async load(bytes, description) {
    const { instance } = await WebAssembly.instantiate(bytes, {});
    const [program] = description.programs;
    return new Program(instance.exports, program);
  }

  constructor(exports, description) {
    this.run = exports[description.name];
    let end = exports.__heap_base.value;
    const take = (size) => {
      const start = Math.ceil(end / 64) * 64;
      end = start + size;
      return start;
    };
    // A word each for ABI and flags, the arena and its size; then the pointers.
    const size = 4 * (4 + description.pointers.length);
    this.call = take(size);
    const arena = take(description.arena.size);
    const places = description.pointers.map((pointer) => ({ ...pointer, address: take(pointer.bytes) }));
    const missing = end - exports.memory.buffer.byteLength;
    if (missing > 0) exports.memory.grow(Math.ceil(missing / 65536));
    const call = new DataView(exports.memory.buffer, this.call, size);
    call.setUint32(0, description.abi, true);
    call.setUint32(8, arena, true);
    call.setUint32(12, description.arena.size, true);
    this.arrays = {};
    for (const { name, offset, address, element_type, bytes } of places) {
      const array = arrays[element_type];
      call.setUint32(offset, address, true);
      this.arrays[name] = new array(exports.memory.buffer, address, bytes / array.BYTES_PER_ELEMENT);
    }
  }

  // Runs the program on what the arrays hold; fails with its status where that is not 0.
  execute() {
    const status = this.run(this.call);
    if (status !== 0) throw new Error(`status ${status}`);
  }
}
