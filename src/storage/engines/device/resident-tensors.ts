/** Tensors in device memory, uploaded or converted there. */

import { failWith, invariant } from '../../../ast/diagnostics/diagnostic.ts'
import type { LevelArray } from '../../../ast/nodes/axis-kinds.ts'
import { type Coroutine, type Work, waitFor } from '../../../ast/work.ts'
import type { Level } from '../../../columns/stored-level.ts'
import { arraysOfLevel, withArrays } from '../../../columns/stored-level.ts'
import type { StoredAxis } from '../../../ir/coordinates/axis.ts'
import type { Instance } from '../../../ir/formats/format.ts'
import { getOrAdd } from '../../../ir/memoize.ts'
import type { Dtype } from '../../../ir/values/dtype.ts'
import type { Device } from '../../../runtime/device.ts'
import type { CoordSource, LevelSource } from '../../convert.ts'
import type { StoredParts } from '../../entries/stored-parts.ts'
import type { FormatOperands } from '../../format-operands.ts'
import { storedValues, validateStored } from '../../ready/validate.ts'
import type { Part } from '../../remapping/part-assembly.ts'
import { checkCoords, makeStorage, type Storage } from '../../storage.ts'
import type { CoordTensor, StoredTensor } from '../../tensor.ts'
import type { Column } from './kernels/kernel-builder.ts'
import { Queue } from './queue/command-queue.ts'

export interface ResidentBase {
  /** @internal */
  readonly queue: Queue
  readonly shape: readonly number[]
  readonly dtype: Dtype
  readonly freed: boolean
  free(): void
}

export type ResidentCoords = ResidentBase & CoordSource<Column>

export type ResidentStored = ResidentBase & LevelSource<Column>

export type ResidentTensor = ResidentCoords | ResidentStored | ResidentParts

const queues = new WeakMap<Device, Queue>()

/** The command queue shared by all conversions on a device. */
export const queueOf = (device: Device): Queue => getOrAdd(queues, device, () => new Queue(device))

/** Frees the kernels and memory that conversions cache. */
export async function releaseConversions(device: Device): Promise<void> {
  const queue = queues.get(device)
  queues.delete(device)
  await queue?.dispose()
}

export const releaseSpare = (device: Device): void => queues.get(device)?.trim()

/**
 * Validates and uploads a tensor. A stored one is over `axes`, whose extents are its shape. @throws SptError
 * `bind/coordinate-range`, `bind/coordinates`, `device/out-of-memory`, and as `validateStored`
 */
export async function uploadResident(
  device: Device,
  tensor: CoordTensor | StoredTensor,
  axes?: readonly StoredAxis[],
  call?: Work,
): Promise<ResidentTensor> {
  const queue = queueOf(device)
  return tensor.kind === 'coords'
    ? queue.transaction(uploadCoords(queue, tensor), call)
    : queue.transaction(uploadStored(queue, tensor, axes), call)
}

const upload = (queue: Queue, ...array: Parameters<Queue['upload']>): Coroutine<Column> =>
  waitFor(queue.upload(...array))

/**
 * Uploads validated arrays; values are in position order. @throws SptError `device/out-of-memory`,
 * `device/buffer-too-large`
 */
export const residentStorage = (
  device: Device,
  storage: Storage,
  tensor: Pick<StoredTensor, 'shape' | 'dtype' | 'values'>,
): Promise<ResidentStored> => {
  const queue = queueOf(device)
  return queue.transaction(uploadStorage(queue, storage, tensor))
}

function* uploadCoords(queue: Queue, tensor: CoordTensor): Coroutine<ResidentCoords> {
  const { shape, dtype } = tensor
  const axes = shape.map((_, k) => ({ name: String(k) }))
  checkCoords(axes, new Map(shape.map((n, k) => [String(k), n])), tensor.coords)
  const coords: Column[] = []
  for (const c of tensor.coords) coords.push(yield* upload(queue, c, 'i32', 'coordinates'))
  const values = tensor.values ? yield* upload(queue, tensor.values, dtype, 'values') : null
  return withFree({ kind: 'coords', queue, shape, dtype, coords, values }, [...coords, values])
}

function* uploadStored(
  queue: Queue,
  tensor: StoredTensor,
  axes: readonly StoredAxis[] | undefined,
): Coroutine<ResidentStored> {
  if (!axes)
    failWith('convert/axes', 'stored arrays without axes', {
      expected: 'the axes of the tensor',
      hint: 'pass the axes of the buffer that the arrays belong to: those of these names in kernel.compilation.source.axes',
    })
  const extents = new Map(axes.map((a, k) => [a.name, tensor.shape[k] ?? 0]))
  const storage = validateStored(axes, { extents }, tensor)
  const values = tensor.values ? storedValues(storage, tensor, 0) : null
  return yield* uploadStorage(queue, storage, { ...tensor, values })
}

function* uploadStorage(
  queue: Queue,
  storage: Storage,
  tensor: Pick<StoredTensor, 'shape' | 'dtype' | 'values'>,
): Coroutine<ResidentStored> {
  const levels = new Map<string, Level<Column>>()
  for (const [name, level] of storage.levels) {
    const arrays = new Map<LevelArray, Column>()
    for (const [array, a] of arraysOfLevel(level)) arrays.set(array, yield* upload(queue, a, 'i32', 'index'))
    levels.set(name, withArrays(level, arrays))
  }
  const values = tensor.values ? yield* upload(queue, tensor.values, tensor.dtype, 'values') : null
  const { shape, dtype } = tensor
  const columns = [...columnsOf(levels), values]
  return withFree(
    { kind: 'stored', queue, shape, dtype, ...makeStorage(storage.axes, levels), values },
    columns,
  )
}

/** A tensor with `free`, which releases all its columns. */
function withFree<const T extends { readonly queue: Queue }>(tensor: T, columns: readonly (Column | null)[]) {
  let freed = false
  return {
    ...tensor,
    get freed(): boolean {
      return freed
    },
    free(): void {
      freed = true
      tensor.queue.release(...columns)
    },
  }
}

const columnsOf = (levels: ReadonlyMap<string, Level<Column>>): (Column | null)[] =>
  [...levels.values()].flatMap((l) => [l.indptr, l.indices, l.mask])

export class ResidentParts implements ResidentBase {
  readonly kind = 'parts'
  /** @internal */
  readonly queue: Queue
  readonly instance: Instance
  readonly shape: readonly number[]
  readonly dtype: Dtype
  readonly fill: number
  readonly parts: readonly Part<Column>[]
  readonly given: FormatOperands
  #freed = false

  /** @internal */
  constructor(
    fields: Pick<ResidentParts, 'queue' | 'instance' | 'shape' | 'dtype' | 'fill' | 'parts' | 'given'>,
  ) {
    this.queue = fields.queue
    this.instance = fields.instance
    this.shape = fields.shape
    this.dtype = fields.dtype
    this.fill = fields.fill
    this.parts = fields.parts
    this.given = fields.given
  }

  get bytes(): number {
    return this.#columns().reduce((n, c) => n + c.length * this.queue.elementBytes(c.dtype), 0)
  }

  get freed(): boolean {
    return this.#freed
  }

  /** Downloads the tensor. @throws SptError `device/freed` */
  async download(): Promise<StoredParts> {
    checkNotFreed(this)
    const { queue: q, dtype } = this
    const downloadIndex = async (c: Column): Promise<Int32Array> => {
      const a = await q.download(c)
      invariant(a instanceof Int32Array, 'index arrays are of i32')
      return a
    }
    const parts: StoredParts['parts'][number][] = []
    for (const p of this.parts) {
      const { axes } = p.storage
      const levels = new Map<string, Level>()
      for (const [name, level] of p.storage.levels) {
        const arrays = new Map<LevelArray, Int32Array>()
        for (const [array, c] of arraysOfLevel(level)) arrays.set(array, await downloadIndex(c))
        levels.set(name, withArrays(level, arrays))
      }
      const tables = new Map<string, Int32Array>()
      for (const [name, c] of p.tables) tables.set(name, await downloadIndex(c))
      const values = await q.download(p.values)
      parts.push({ ...p, storage: makeStorage(axes, levels), values, tables, entries: null })
    }
    const { instance, shape, fill, given } = this
    return { kind: 'parts', instance, shape, dtype, fill, parts, given }
  }

  free(): void {
    this.#freed = true
    this.queue.release(...this.#columns())
  }

  #columns(): Column[] {
    const columns = this.parts.flatMap((p) => [
      p.values,
      ...p.tables.values(),
      ...columnsOf(p.storage.levels),
    ])
    return [...new Set(columns)].filter((c) => c !== null)
  }
}

/** Rejects a freed tensor, whose memory may be in use by others. @throws SptError `device/freed` */
export function checkNotFreed(tensor: ResidentTensor): void {
  if (tensor.freed)
    failWith(
      'device/freed',
      `the tensor ${tensor.kind === 'parts' ? `in ${tensor.instance.text}` : `of [${tensor.shape.join(' × ')}]`} has been freed`,
      {
        expected: 'a tensor that is still on the device',
        hint: 'free resident tensors only after their last use',
      },
    )
}
