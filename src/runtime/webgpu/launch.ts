/**
 * Encodes commands in one command encoder. The scalars of all launches of a submission are in one uniform buffer, each distinct
 * set of values once, addressed by dynamic offsets. So a bind group depends on the buffers only and is created once.
 */

import { failAs, invariant } from '../../ast/diagnostics/diagnostic.ts'
import { getOrAdd } from '../../ir/memoize.ts'
import { roundTo } from '../../ir/values/words.ts'
import type { ArgValue, Command, LaunchCommand } from '../device.ts'
import { Clears, type GpuBuffer, USAGE } from './memory.ts'
import type { GpuEntry, GpuModule } from './module.ts'
import type { Session } from './session.ts'
import { wordDtype } from './widened-elements.ts'

type BoundCommand =
  | { readonly kind: 'clear'; readonly buffer: GPUBuffer }
  | {
      readonly kind: 'launch'
      readonly pipeline: GPUComputePipeline
      readonly group: GPUBindGroup
      readonly offsets: readonly number[]
      readonly grid: readonly [number, number, number]
    }

/** Query set and indices of the timestamps before the first and after the last command. */
export interface TimestampRange {
  readonly querySet: GPUQuerySet
  readonly begin: number
  readonly end: number
}

const MIN_ARENA_BYTES = 4096

let arenaCount = 0

/** The uniform buffer with the scalars of a submission. */
class Scalars {
  readonly #session: Session
  readonly #align: number
  #buffer: GPUBuffer | undefined
  /** Current contents of the buffer, so that a repeated list of commands writes nothing. */
  #shadow = new Uint32Array(0)
  /** Identifies the current buffer, because bind groups refer to it. */
  id = 0

  constructor(session: Session) {
    this.#session = session
    this.#align = session.device.limits.minUniformBufferOffsetAlignment
  }

  get buffer(): GPUBuffer {
    invariant(this.#buffer, 'no scalars have been written')
    return this.#buffer
  }

  /** Lays out and writes the scalars of all launches; returns the offset of each command. */
  write(commands: readonly Command[]): number[] {
    const offsetByValues = new Map<string, number>()
    const blocks: { offset: number; words: Uint32Array }[] = []
    let end = 0
    const offsets = commands.map((c) => {
      if (c.kind === 'clear') return 0
      const entry = entryOf(c)
      if (entry.uniformBytes === 0) return 0
      const words = scalarWords(entry, c.args)
      const key = words.join()
      let offset = offsetByValues.get(key)
      if (offset === undefined) {
        offset = end
        offsetByValues.set(key, offset)
        blocks.push({ offset, words })
        end = Math.ceil((offset + entry.uniformBytes) / this.#align) * this.#align
      }
      return offset
    })
    if (end === 0) return offsets
    const data = new Uint32Array(end / 4)
    for (const b of blocks) data.set(b.words, b.offset / 4)
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
    const size = 2 ** Math.ceil(Math.log2(Math.max(bytes, MIN_ARENA_BYTES)))
    this.#buffer?.destroy()
    this.#buffer = this.#session.device.createBuffer({
      label: 'scalars',
      size,
      usage: USAGE.uniform | USAGE.copyDst,
    })
    // New buffers are zero-filled.
    this.#shadow = new Uint32Array(size / 4)
    this.id = ++arenaCount
  }
}

const entryOf = (c: LaunchCommand): GpuEntry => (c.module as GpuModule).entries.get(c.entry)!

/** Commands with their bindings and scalars, which can be submitted repeatedly. */
export interface RecordedCommands {
  readonly commands: readonly BoundCommand[]
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
   * Encodes and submits `commands` synchronously. No await separates the write of the uniforms from the submission that reads
   * them, so calls may overlap.
   */
  submit(commands: readonly Command[], stamps?: TimestampRange): void {
    const offsets = this.#scalars.write(commands)
    this.#encode(
      this.#bindAll(commands, offsets, (entry, args) => this.#cachedGroup(entry, args)),
      stamps,
    )
  }

  /** Records commands with a separate uniform buffer, which other submissions do not overwrite. */
  record(commands: readonly Command[]): RecordedCommands {
    const scalars = new Scalars(this.#session)
    const offsets = scalars.write(commands)
    const groups = new Map<GpuEntry, Map<string, GPUBindGroup>>()
    const bound = this.#bindAll(commands, offsets, (entry, args) => {
      const key = buffersOf(args)
        .map((b) => b.id)
        .join()
      const entryGroups = getOrAdd(groups, entry, () => new Map<string, GPUBindGroup>())
      return getOrAdd(entryGroups, key, () => this.#bind(entry, args, scalars))
    })
    return { commands: bound, free: () => scalars.free() }
  }

  replay(recorded: RecordedCommands, stamps?: TimestampRange): void {
    this.#encode(recorded.commands, stamps)
  }

  /** Binds commands. Clears among launches become dispatches, which do not end the pass. */
  #bindAll(
    commands: readonly Command[],
    offsets: readonly number[],
    group: (entry: GpuEntry, args: readonly ArgValue[]) => GPUBindGroup,
  ): BoundCommand[] {
    const hasLaunches = commands.some((c) => c.kind === 'launch')
    return commands.map((c, k): BoundCommand => {
      if (c.kind === 'clear') {
        const buffer = c.buffer as GpuBuffer
        const clear = hasLaunches ? this.#clears.launchFor(buffer) : undefined
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

  #encode(commands: readonly BoundCommand[], stamps?: TimestampRange): void {
    const { device } = this.#session
    const encoder = device.createCommandEncoder()
    encode(encoder, commands, stamps)
    device.queue.submit([encoder.finish()])
  }

  #cachedGroup(entry: GpuEntry, args: readonly ArgValue[]): GPUBindGroup {
    const buffers = buffersOf(args)
    const key = `${entry.uniformBytes > 0 ? this.#scalars.id : ''}:${buffers.map((b) => b.id).join()}`
    const cached = entry.bindGroups.get(key)
    if (cached) return cached.group
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

/** Rejects a buffer that is bound to two arguments, one of which may be written (forbidden by WebGPU). @throws SptError */
function checkAliases(entry: GpuEntry, buffers: readonly GpuBuffer[]): void {
  buffers.forEach((b, k) => {
    const first = buffers.indexOf(b)
    if (first === k) return
    const [x, y] = [entry.buffers[first]!, entry.buffers[k]!]
    if (x.access === 'read' && y.access === 'read') return
    failAs('device/aliased-arguments', {
      message: `${entry.spec.name}: the buffer ${b.label} is bound to both ${x.name} and ${y.name}, and is written`,
      hint: 'bind a copy to one of them',
    })
  })
}

/** Words of an entry's uniform structure with the values of its scalars, padded to its size. */
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

/** Encodes commands. Launches between two clears share a pass; each launch sees the writes of earlier launches. */
function encode(
  encoder: GPUCommandEncoder,
  commands: readonly BoundCommand[],
  stamps?: TimestampRange,
): void {
  const last = commands.length - 1
  const lastClear = commands.findLastIndex((c) => c.kind === 'clear')
  let pass: GPUComputePassEncoder | undefined
  const beginPass = (first: boolean, final: boolean): GPUComputePassEncoder => {
    if (!stamps || !(first || final)) return encoder.beginComputePass()
    const timestampWrites: GPUComputePassTimestampWrites = {
      querySet: stamps.querySet,
      ...(first ? { beginningOfPassWriteIndex: stamps.begin } : {}),
      ...(final ? { endOfPassWriteIndex: stamps.end } : {}),
    }
    return encoder.beginComputePass({ timestampWrites })
  }
  // Timestamps are written only at the ends of a pass, so an empty pass is added if the first or last command is a clear.
  if (stamps && commands[0]?.kind !== 'launch') beginPass(true, false).end()
  commands.forEach((c, k) => {
    if (c.kind === 'clear') {
      pass?.end()
      pass = undefined
      encoder.clearBuffer(c.buffer)
      return
    }
    pass ??= beginPass(k === 0, lastClear < k)
    pass.setPipeline(c.pipeline)
    pass.setBindGroup(0, c.group, c.offsets)
    pass.dispatchWorkgroups(...c.grid)
  })
  pass?.end()
  if (stamps && commands[last]?.kind !== 'launch') beginPass(false, true).end()
}
