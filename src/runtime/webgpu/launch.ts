/**
 * Encodes commands in one command encoder. The scalars of all launches of a submission are in one uniform buffer, each distinct
 * set of values once, addressed by dynamic offsets. So a bind group depends on the buffers only and is created once.
 */

import { failAs } from '../../ast/diagnostics/diagnostic.ts'
import { getOrAdd } from '../../ir/memoize.ts'
import { roundTo } from '../../ir/values/words.ts'
import type { ArgValue, Command, LaunchCommand } from '../device.ts'
import type { GpuBuffer } from './buffer.ts'
import { USAGE } from './callers-buffer.ts'
import type { GpuEntry, GpuModule } from './module.ts'
import type { Session } from './session.ts'
import { wordDtype } from './widened-elements.ts'
import { Clears } from './zero-fill.ts'

type BoundCommand =
  | { readonly kind: 'clear'; readonly buffer: GpuBuffer }
  | {
      readonly kind: 'launch'
      readonly pipeline: GPUComputePipeline
      readonly group: GPUBindGroup
      readonly offsets: readonly number[]
      readonly grid: readonly [number, number, number]
      readonly indirect?: LaunchCommand['indirect']
    }

/** Query set and indices of the timestamps before the first and after the last command. */
export interface TimestampRange {
  readonly querySet: GPUQuerySet
  readonly begin: number
  readonly end: number
}

/** Bytes for the scalars of a submission; a longer list of commands gets a buffer of its own. */
const ARENA_BYTES = 2 ** 16

/** Scalars of commands: the offset of each command, and the words of each distinct set. */
interface ScalarLayout {
  readonly offsets: readonly number[]
  readonly data: Uint32Array<ArrayBuffer>
}

function layOutScalars(commands: readonly Command[], align: number): ScalarLayout {
  const offsetByValues = new Map<string, number>()
  const blocks: { offset: number; words: Uint32Array }[] = []
  let end = 0
  const offsets = commands.map((c) => {
    if (c.kind === 'clear') return 0
    const entry = entryOf(c)
    if (entry.uniformBytes === 0) return 0
    const words = scalarWords(entry, c.args)
    return getOrAdd(offsetByValues, words.join(), () => {
      const offset = end
      blocks.push({ offset, words })
      end = Math.ceil((offset + entry.uniformBytes) / align) * align
      return offset
    })
  })
  const data = new Uint32Array(end / 4)
  for (const b of blocks) data.set(b.words, b.offset / 4)
  return { offsets, data }
}

/** A uniform buffer with the scalars of a submission. */
class Scalars {
  readonly buffer: GPUBuffer
  /** Contents of the buffer, so that a repeated list of commands writes nothing. New buffers are zero-filled. */
  readonly #shadow: Uint32Array

  constructor(
    private readonly session: Session,
    bytes: number,
  ) {
    const usage = USAGE.uniform | USAGE.copyDst
    this.buffer = session.device.createBuffer({ label: 'scalars', size: Math.max(16, bytes), usage })
    this.#shadow = new Uint32Array(bytes / 4)
  }

  write(data: Uint32Array<ArrayBuffer>): void {
    if (data.every((w, k) => w === this.#shadow[k])) return
    this.session.device.queue.writeBuffer(this.buffer, 0, data)
    this.#shadow.set(data)
  }

  free(): void {
    this.buffer.destroy()
  }
}

const entryOf = (c: LaunchCommand): GpuEntry => (c.module as GpuModule).entries.get(c.entry)!

/** Commands with their bindings and scalars, which can be submitted repeatedly. */
export interface RecordedCommands {
  readonly commands: readonly BoundCommand[]
  free(): void
}

export type Launcher = ReturnType<typeof launcherOn>

export function launcherOn(session: Session) {
  let arena: Scalars | undefined
  /** Lists of commands that were recorded in callers' encoders, with scalars that later submissions do not overwrite. */
  const recorded = new WeakMap<readonly Command[], RecordedCommands>()
  const clears = new Clears(session)
  /**
   * Encodes and submits `commands` synchronously. No await separates the write of the uniforms from the submission that reads
   * them, so calls may overlap.
   */
  const submit = (commands: readonly Command[], stamps?: TimestampRange): void => {
    const layout = layOut(commands)
    if (layout.data.byteLength > ARENA_BYTES) {
      const recorded = recordBound(commands, layout)
      replay(recorded, stamps)
      recorded.free()
      return
    }
    // Created once, so cached bind groups stay valid.
    arena ??= new Scalars(session, ARENA_BYTES)
    const scalars = arena
    scalars.write(layout.data)
    submitBound(
      bindAll(commands, layout.offsets, (entry, args) => cachedGroup(entry, args, scalars)),
      stamps,
    )
  }
  /** Records commands with a separate uniform buffer, which other submissions do not overwrite. */
  const record = (commands: readonly Command[]): RecordedCommands => recordBound(commands, layOut(commands))
  /** Encodes commands without a submission. A repeated list reuses its scalars. */
  const recordInto = (encoder: GPUCommandEncoder, commands: readonly Command[]): void => {
    encode(encoder, getOrAdd(recorded, commands, () => record(commands)).commands)
  }
  const layOut = (commands: readonly Command[]): ScalarLayout =>
    layOutScalars(commands, session.device.limits.minUniformBufferOffsetAlignment)
  const recordBound = (commands: readonly Command[], { offsets, data }: ScalarLayout): RecordedCommands => {
    const scalars = new Scalars(session, data.byteLength)
    scalars.write(data)
    const groups = new Map<GpuEntry, Map<string, GPUBindGroup>>()
    const bound = bindAll(commands, offsets, (entry, args) => {
      const entryGroups = getOrAdd(groups, entry, () => new Map<string, GPUBindGroup>())
      return getOrAdd(entryGroups, keyOf(args), () => bind(entry, args, scalars))
    })
    return { commands: bound, free: () => scalars.free() }
  }
  const replay = (recorded: RecordedCommands, stamps?: TimestampRange): void => {
    submitBound(recorded.commands, stamps)
  }
  /** Binds commands. Clears among launches become dispatches, which do not end the pass. */
  const bindAll = (
    commands: readonly Command[],
    offsets: readonly number[],
    group: (entry: GpuEntry, args: readonly ArgValue[]) => GPUBindGroup,
  ): BoundCommand[] => {
    const hasLaunches = commands.some((c) => c.kind === 'launch')
    return commands.map((c, k): BoundCommand => {
      if (c.kind === 'clear') {
        const buffer = c.buffer as GpuBuffer
        const clear = hasLaunches ? clears.launchFor(buffer) : undefined
        return clear ? { kind: 'launch', ...clear, offsets: [] } : { kind: 'clear', buffer }
      }
      const entry = entryOf(c)
      return {
        kind: 'launch',
        pipeline: entry.pipeline,
        group: group(entry, c.args),
        offsets: entry.uniformBytes > 0 ? [offsets[k]!] : [],
        grid: c.grid,
        ...(c.indirect && { indirect: c.indirect }),
      }
    })
  }
  const submitBound = (commands: readonly BoundCommand[], stamps?: TimestampRange): void => {
    const { device } = session
    const encoder = device.createCommandEncoder()
    encode(encoder, commands, stamps)
    device.queue.submit([encoder.finish()])
  }
  const cachedGroup = (entry: GpuEntry, args: readonly ArgValue[], scalars: Scalars): GPUBindGroup => {
    const buffers = buffersOf(args)
    const key = keyOf(args)
    const cached = entry.bindGroups.get(key)
    if (cached) return cached.group
    const group = bind(entry, args, scalars)
    const drop = (): void => {
      entry.bindGroups.delete(key)
      for (const b of buffers) b.onFree.delete(drop)
    }
    entry.bindGroups.set(key, { group, drop })
    for (const b of buffers) b.onFree.add(drop)
    return group
  }
  const bind = (entry: GpuEntry, args: readonly ArgValue[], scalars: Scalars): GPUBindGroup => {
    const buffers = buffersOf(args)
    checkBoundOnce(entry, buffers)
    const entries: GPUBindGroupEntry[] = buffers.map((b, binding) => ({
      binding,
      resource: b.binding,
    }))
    if (entry.uniformBytes > 0)
      entries.push({
        binding: buffers.length,
        resource: { buffer: scalars.buffer, offset: 0, size: entry.uniformBytes },
      })
    return session.device.createBindGroup({ label: entry.spec.name, layout: entry.layout, entries })
  }
  return { submit, record, recordInto, replay }
}

const buffersOf = (args: readonly ArgValue[]): GpuBuffer[] =>
  args.filter((a): a is GpuBuffer => typeof a !== 'number')

const keyOf = (args: readonly ArgValue[]): string =>
  buffersOf(args)
    .map((b) => b.id)
    .join()

/**
 * Rejects a buffer that is bound to two arguments, one of which may be written (forbidden by WebGPU; for a read and a written argument
 * even in separate ranges of a `GPUBuffer`). @throws SptError
 */
function checkBoundOnce(entry: GpuEntry, buffers: readonly GpuBuffer[]): void {
  const overlaps = (a: GpuBuffer, b: GpuBuffer): boolean =>
    a.offset < b.offset + b.size && b.offset < a.offset + a.size
  const conflicts = (j: number, k: number): boolean =>
    buffers[j]!.gpu === buffers[k]!.gpu &&
    (entry.buffers[j]!.access !== entry.buffers[k]!.access || overlaps(buffers[j]!, buffers[k]!))
  buffers.forEach((b, k) => {
    const first = buffers.findIndex((_, j) => j < k && conflicts(j, k))
    if (first < 0) return
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
      ...(first && { beginningOfPassWriteIndex: stamps.begin }),
      ...(final && { endOfPassWriteIndex: stamps.end }),
    }
    return encoder.beginComputePass({ timestampWrites })
  }
  // Timestamps are written only at the ends of a pass, so an empty pass is added if the first or last command is a clear.
  if (stamps && commands[0]?.kind !== 'launch') beginPass(true, false).end()
  commands.forEach((c, k) => {
    if (c.kind === 'clear') {
      pass?.end()
      pass = undefined
      encoder.clearBuffer(c.buffer.gpu, c.buffer.offset, c.buffer.size)
      return
    }
    pass ??= beginPass(k === 0, lastClear < k)
    pass.setPipeline(c.pipeline)
    pass.setBindGroup(0, c.group, c.offsets)
    if (c.indirect) {
      const { gpu, offset } = c.indirect.buffer as GpuBuffer
      pass.dispatchWorkgroupsIndirect(gpu, offset + c.indirect.offset)
    } else pass.dispatchWorkgroups(...c.grid)
  })
  pass?.end()
  if (stamps && commands[last]?.kind !== 'launch') beginPass(false, true).end()
}
