/**
 * Commands → one command encoder. The scalars of all launches of a submission lie in one uniform buffer, each
 * distinct set of values once, reached by dynamic offsets; so a bind group depends on the buffers alone and is
 * made once.
 */
import { fail, invariant } from '../../ast/diagnostic.ts'
import type { ArgValue, Command } from '../device.ts'
import { roundTo, wordDtype } from '../widened-elements.ts'
import { Clears } from './clears.ts'
import { type GpuBuffer, USAGE } from './memory.ts'
import type { GpuEntry, GpuModule } from './module.ts'
import type { Session } from './session.ts'

/** A command whose bindings are in place. */
type Ready =
  | { readonly kind: 'clear'; readonly buffer: GPUBuffer }
  | {
      readonly kind: 'launch'
      readonly pipeline: GPUComputePipeline
      readonly group: GPUBindGroup
      readonly offsets: readonly number[]
      readonly grid: readonly [number, number, number]
    }

/** Query set and indices of the timestamps before the first and after the last command. */
export interface Stamps {
  readonly querySet: GPUQuerySet
  readonly begin: number
  readonly end: number
}

const LEAST_ARENA = 4096

let arenas = 0

/** The uniform buffer that the scalars of a submission lie in. */
class Scalars {
  readonly #session: Session
  readonly #align: number
  #buffer: GPUBuffer | undefined
  /** Current contents of the buffer, so that a repeated list of commands writes nothing. */
  #shadow = new Uint32Array(0)
  /** Tells the buffers there have been apart: a bind group refers to one of them. */
  id = 0

  constructor(session: Session) {
    this.#session = session
    this.#align = session.device.limits.minUniformBufferOffsetAlignment
  }

  get buffer(): GPUBuffer {
    invariant(this.#buffer, 'no scalars have been written')
    return this.#buffer
  }

  /** Lays the scalars of all launches out and writes them; gives each command's offset. */
  write(commands: readonly Command[]): number[] {
    const places = new Map<string, number>()
    const blocks: { at: number; words: Uint32Array }[] = []
    let end = 0
    const offsets = commands.map((c) => {
      if (c.kind === 'clear') return 0
      const entry = entryOf(c)
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
      this.#session.device.queue.writeBuffer(this.buffer, 0, data)
      this.#shadow.set(data)
    }
    return offsets
  }

  free(): void {
    this.#buffer?.destroy()
    this.#buffer = undefined
  }

  #reserve(bytes: number): void {
    if (this.#buffer && this.#buffer.size >= bytes) return
    const size = 2 ** Math.ceil(Math.log2(Math.max(bytes, LEAST_ARENA)))
    this.#buffer?.destroy()
    this.#buffer = this.#session.device.createBuffer({
      label: 'scalars',
      size,
      usage: USAGE.uniform | USAGE.copyDst,
    })
    // A new buffer is all zeros.
    this.#shadow = new Uint32Array(size / 4)
    this.id = ++arenas
  }
}

const entryOf = (c: Extract<Command, { kind: 'launch' }>): GpuEntry =>
  (c.module as GpuModule).entries.get(c.entry)!

/** Commands whose bindings and scalars are in place, to be submitted any number of times. */
export interface Recorded {
  readonly commands: readonly Ready[]
  free(): void
}

export class Launcher {
  readonly #session: Session
  readonly #scalars: Scalars
  readonly #clears: Clears

  constructor(session: Session) {
    this.#session = session
    this.#scalars = new Scalars(session)
    this.#clears = new Clears(session)
  }

  /**
   * Encodes and submits `commands` in one go. Nothing is awaited between writing the uniforms and the
   * submission that reads them, so calls may overlap.
   */
  submit(commands: readonly Command[], stamps?: Stamps): void {
    const offsets = this.#scalars.write(commands)
    this.#encode(
      this.#ready(commands, offsets, (entry, args) => this.#known(entry, args)),
      stamps,
    )
  }

  /** With scalars of their own, which no other submission overwrites. */
  record(commands: readonly Command[]): Recorded {
    const scalars = new Scalars(this.#session)
    const offsets = scalars.write(commands)
    const groups = new Map<GpuEntry, Map<string, GPUBindGroup>>()
    const list = this.#ready(commands, offsets, (entry, args) => {
      const known = groups.get(entry) ?? new Map<string, GPUBindGroup>()
      const key = buffersOf(args)
        .map((b) => b.id)
        .join()
      const group = known.get(key) ?? this.#bind(entry, args, scalars)
      groups.set(entry, known.set(key, group))
      return group
    })
    return { commands: list, free: () => scalars.free() }
  }

  replay(recorded: Recorded, stamps?: Stamps): void {
    this.#encode(recorded.commands, stamps)
  }

  /** Clears among launches are launches too: they need not end the pass. */
  #ready(
    commands: readonly Command[],
    offsets: readonly number[],
    group: (entry: GpuEntry, args: readonly ArgValue[]) => GPUBindGroup,
  ): Ready[] {
    const launches = commands.some((c) => c.kind === 'launch')
    return commands.map((c, k): Ready => {
      if (c.kind === 'clear') {
        const buffer = c.buffer as GpuBuffer
        const clear = launches ? this.#clears.of(buffer) : undefined
        return clear ? { kind: 'launch', ...clear, offsets: [] } : { kind: 'clear', buffer: buffer.gpu }
      }
      const entry = entryOf(c)
      return {
        kind: 'launch',
        pipeline: entry.pipeline,
        group: group(entry, c.args),
        offsets: entry.uniformBytes > 0 ? [offsets[k]!] : [],
        grid: c.grid,
      }
    })
  }

  #encode(commands: readonly Ready[], stamps?: Stamps): void {
    const { device } = this.#session
    const encoder = device.createCommandEncoder()
    encode(encoder, commands, stamps)
    device.queue.submit([encoder.finish()])
  }

  #known(entry: GpuEntry, args: readonly ArgValue[]): GPUBindGroup {
    const buffers = buffersOf(args)
    const key = `${entry.uniformBytes > 0 ? this.#scalars.id : ''}:${buffers.map((b) => b.id).join()}`
    const known = entry.bindGroups.get(key)
    if (known) return known.group
    const group = this.#bind(entry, args, this.#scalars)
    const drop = (): void => {
      entry.bindGroups.delete(key)
      for (const b of buffers) b.onFree.delete(drop)
    }
    entry.bindGroups.set(key, { group, drop })
    for (const b of buffers) b.onFree.add(drop)
    return group
  }

  #bind(entry: GpuEntry, args: readonly ArgValue[], scalars: Scalars): GPUBindGroup {
    const buffers = buffersOf(args)
    checkAliases(entry, buffers)
    const entries: GPUBindGroupEntry[] = buffers.map((b, binding) => ({
      binding,
      resource: { buffer: b.gpu },
    }))
    if (entry.uniformBytes > 0)
      entries.push({
        binding: buffers.length,
        resource: { buffer: scalars.buffer, offset: 0, size: entry.uniformBytes },
      })
    return this.#session.device.createBindGroup({ label: entry.spec.name, layout: entry.layout, entries })
  }
}

const buffersOf = (args: readonly ArgValue[]): GpuBuffer[] =>
  args.filter((a): a is GpuBuffer => typeof a !== 'number')

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

/** Encodes commands; launches between two clears share a pass, in which each sees the writes of earlier ones. */
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
    pass.setPipeline(c.pipeline)
    pass.setBindGroup(0, c.group, c.offsets)
    pass.dispatchWorkgroups(...c.grid)
  })
  pass?.end()
  if (stamps && commands[last]?.kind !== 'launch') begin(false, true).end()
}
