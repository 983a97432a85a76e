import type { Memory, PeerTimer } from '../../bench/peers/stream.ts'
import type { HostArray } from '../../src/runtime/device.ts'

/** Host memory in the place of a stream's. */
export class HostStream {
  readonly live = new Map<bigint, Uint8Array>()
  #next = 1n

  upload(data: HostArray): Memory {
    const memory = this.alloc(data.byteLength)
    this.bytes(memory).set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength))
    return memory
  }

  alloc(bytes: number): Memory {
    const memory = { address: this.#next++, bytes }
    this.live.set(memory.address, new Uint8Array(bytes))
    return memory
  }

  bytes(memory: Memory): Uint8Array {
    const found = this.live.get(memory.address)
    if (!found) throw new Error('this memory has been freed')
    return found
  }

  floats = (m: Memory): Float32Array => new Float32Array(this.bytes(m).buffer)
  ints = (m: Memory): Int32Array => new Int32Array(this.bytes(m).buffer)

  download<T extends HostArray>(from: Memory, into: T): T {
    new Uint8Array(into.buffer, into.byteOffset, into.byteLength).set(this.bytes(from))
    return into
  }

  fill(memory: Memory, byte: number): void {
    this.bytes(memory).fill(byte)
  }

  free(...all: readonly Memory[]): void {
    for (const m of all) if (!this.live.delete(m.address)) throw new Error('this memory was freed before')
  }

  enter(): void {}
  finish(): void {}

  graph(enqueue: () => void): PeerTimer {
    return {
      time: (repeats) =>
        Array.from({ length: repeats }, () => {
          enqueue()
          return 1
        }),
      free() {},
    }
  }
}
