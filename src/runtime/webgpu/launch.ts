/**
 * Commands → one command encoder. The scalars of all launches of a submission lie in one uniform buffer, each
 * distinct set of values once, reached by dynamic offsets; so a bind group depends on the buffers alone and is
 * made once.
 */
import { fail } from '../../ast/diagnostic.ts'
import type { ArgValue, Command } from '../device.ts'
import { roundTo, wordDtype } from '../widen.ts'
import { type GpuBuffer, USAGE } from './memory.ts'
import type { GpuEntry, GpuModule } from './module.ts'
import type { Session } from './session.ts'

/** A command whose bindings are in place. */
type Ready =
  | { readonly kind: 'clear'; readonly buffer: GPUBuffer }
  | {
      readonly kind: 'launch'
      readonly entry: GpuEntry
      readonly group: GPUBindGroup
      readonly offsets: readonly number[]
      readonly grid: readonly [number, number, number]
    }

/** Where to write the device's clock: before the first command and after the last. */
export interface Stamps {
  readonly querySet: GPUQuerySet
  readonly begin: number
  readonly end: number
}

const LEAST_ARENA = 4096

export class Launcher {
  readonly #session: Session
  readonly #align: number
  #arena: GPUBuffer | undefined
  /** What the uniform buffer holds, so that a repeated list of commands writes nothing. */
  #shadow = new Uint32Array(0)
  /** Counts the uniform buffers there have been: bind groups refer to one of them. */
  #generation = 0

  constructor(session: Session) {
    this.#session = session
    this.#align = session.device.limits.minUniformBufferOffsetAlignment
  }

  /**
   * Encodes and submits `commands` in one go. Nothing is awaited between writing the uniforms and the
   * submission that reads them, so calls may overlap.
   */
  submit(commands: readonly Command[], stamps?: Stamps): void {
    const { device } = this.#session
    const ready = this.#prepare(commands)
    const encoder = device.createCommandEncoder()
    encode(encoder, ready, stamps)
    device.queue.submit([encoder.finish()])
  }

  #prepare(commands: readonly Command[]): Ready[] {
    const offsets = this.#uniforms(commands)
    return commands.map((c, k): Ready => {
      if (c.kind === 'clear') return { kind: 'clear', buffer: (c.buffer as GpuBuffer).gpu }
      const entry = (c.module as GpuModule).entries.get(c.entry)!
      return {
        kind: 'launch',
        entry,
        group: this.#bindGroup(entry, c.args),
        offsets: entry.uniformBytes > 0 ? [offsets[k]!] : [],
        grid: c.grid,
      }
    })
  }

  /** Lays the scalars of all launches out and writes them; gives each command's offset. */
  #uniforms(commands: readonly Command[]): number[] {
    const places = new Map<string, number>()
    const blocks: { at: number; words: Uint32Array }[] = []
    let end = 0
    const offsets = commands.map((c) => {
      if (c.kind === 'clear') return 0
      const entry = (c.module as GpuModule).entries.get(c.entry)!
      if (entry.uniformBytes === 0) return 0
      const words = scalarWords(entry, c.args)
      const key = words.join()
      let at = places.get(key)
      if (at === undefined) {
        at = end
        places.set(key, at)
        blocks.push({ at, words })
        end = Math.ceil((at + entry.uniformBytes) / this.#align) * this.#align
      }
      return at
    })
    if (end === 0) return offsets
    const data = new Uint32Array(end / 4)
    for (const b of blocks) data.set(b.words, b.at / 4)
    this.#reserve(end)
    if (data.some((w, k) => w !== this.#shadow[k])) {
      this.#session.device.queue.writeBuffer(this.#arena!, 0, data)
      this.#shadow.set(data)
    }
    return offsets
  }

  #reserve(bytes: number): void {
    if (this.#arena && this.#arena.size >= bytes) return
    const size = 2 ** Math.ceil(Math.log2(Math.max(bytes, LEAST_ARENA)))
    this.#arena?.destroy()
    this.#arena = this.#session.device.createBuffer({
      label: 'scalars',
      size,
      usage: USAGE.uniform | USAGE.copyDst,
    })
    // A new buffer is all zeros.
    this.#shadow = new Uint32Array(size / 4)
    this.#generation++
  }

  #bindGroup(entry: GpuEntry, args: readonly ArgValue[]): GPUBindGroup {
    const buffers = args.filter((a): a is GpuBuffer => typeof a !== 'number')
    const uniform = entry.uniformBytes > 0
    const key = `${uniform ? this.#generation : ''}:${buffers.map((b) => b.id).join()}`
    const known = entry.bindGroups.get(key)
    if (known) return known.group
    checkAliases(entry, buffers)
    const entries: GPUBindGroupEntry[] = buffers.map((b, binding) => ({
      binding,
      resource: { buffer: b.gpu },
    }))
    if (uniform)
      entries.push({
        binding: buffers.length,
        resource: { buffer: this.#arena!, offset: 0, size: entry.uniformBytes },
      })
    const label = entry.spec.name
    const group = this.#session.device.createBindGroup({ label, layout: entry.layout, entries })
    const drop = (): void => {
      entry.bindGroups.delete(key)
      for (const b of buffers) b.onFree.delete(drop)
    }
    entry.bindGroups.set(key, { group, drop })
    for (const b of buffers) b.onFree.add(drop)
    return group
  }
}

/** WebGPU forbids one buffer under two arguments of a launch when either may be written. */
function checkAliases(entry: GpuEntry, buffers: readonly GpuBuffer[]): void {
  buffers.forEach((b, k) => {
    const first = buffers.indexOf(b)
    if (first === k) return
    const [x, y] = [entry.buffers[first]!, entry.buffers[k]!]
    if (x.access === 'read' && y.access === 'read') return
    fail({
      code: 'device/aliased-arguments',
      message: `${entry.spec.name}: the buffer ${b.label} is bound to both ${x.name} and ${y.name}, and is written`,
      hint: 'bind a copy to one of them',
    })
  })
}

/** The values of an entry's scalars as the words of its uniform structure, padded to its size. */
function scalarWords(entry: GpuEntry, args: readonly ArgValue[]): Uint32Array {
  const words = new Uint32Array(entry.uniformBytes / 4)
  const floats = new Float32Array(words.buffer)
  const values = args.filter((a): a is number => typeof a === 'number')
  entry.scalars.forEach((spec, k) => {
    const value = roundTo(spec.dtype, values[k]!)
    if (wordDtype(spec.dtype) === 'f32') floats[k] = value
    else words[k] = value
  })
  return words
}

/** Launches between two clears share a pass; each sees what the ones before it wrote. */
function encode(encoder: GPUCommandEncoder, commands: readonly Ready[], stamps?: Stamps): void {
  const last = commands.length - 1
  const lastClear = commands.findLastIndex((c) => c.kind === 'clear')
  let pass: GPUComputePassEncoder | undefined
  const begin = (first: boolean, final: boolean): GPUComputePassEncoder => {
    if (!stamps || !(first || final)) return encoder.beginComputePass()
    const timestampWrites: GPUComputePassTimestampWrites = {
      querySet: stamps.querySet,
      ...(first ? { beginningOfPassWriteIndex: stamps.begin } : {}),
      ...(final ? { endOfPassWriteIndex: stamps.end } : {}),
    }
    return encoder.beginComputePass({ timestampWrites })
  }
  // The clock can be read only at the ends of a pass: where clears come first or last, an empty one stands in.
  if (stamps && commands[0]?.kind !== 'launch') begin(true, false).end()
  commands.forEach((c, k) => {
    if (c.kind === 'clear') {
      pass?.end()
      pass = undefined
      encoder.clearBuffer(c.buffer)
      return
    }
    pass ??= begin(k === 0, lastClear < k)
    pass.setPipeline(c.entry.pipeline)
    pass.setBindGroup(0, c.group, c.offsets)
    pass.dispatchWorkgroups(...c.grid)
  })
  pass?.end()
  if (stamps && commands[last]?.kind !== 'launch') begin(false, true).end()
}
