/** Random tensors for unbound inputs. The same seed yields the same data on every machine. */

import { AXES, type LevelProperties } from '../../../ast/nodes/axis-kinds.ts'
import { allocate, gather } from '../../../columns/allocate.ts'
import type { StoredAxis } from '../../../ir/coordinates/axis.ts'
import { type Dtype, isFloat } from '../../../ir/values/dtype.ts'
import { encoder, newValues, type Tensor, type ValueArray } from '../../../storage/tensor.ts'

/** Pseudorandom number generator mulberry32: small, well distributed, reproducible. */
export class Random {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** Uniform in [0, 1). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let t = this.#state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }

  below(n: number): number {
    return Math.floor(this.next() * n)
  }

  /** Returns a standard normal number (Box and Muller). */
  normal(): number {
    return Math.sqrt(-2 * Math.log(1 - this.next())) * Math.cos(2 * Math.PI * this.next())
  }
}

const GOLDEN = (Math.sqrt(5) - 1) / 2

/** Kronecker sequence of the golden ratio: terms in [0, 1), evenly spread at any length, without a period. */
export const goldenSequence = (k: number, start = 0): number => (start + k * GOLDEN) % 1

/** Derives a seed per name, so that binding one buffer does not change the others. */
function seedFor(seed: number, name: string): number {
  let h = seed >>> 0
  for (let k = 0; k < name.length; k++) h = Math.imul(h ^ name.charCodeAt(k), 0x01000193) >>> 0
  return h
}

/** Random values: standard normal floats, integers from -8 to 8 (unsigned: 0 to 8), uniform booleans. */
/** Random numbers for a name. */
export const randomFor = (seed: number, name: string): Random => new Random(seedFor(seed, name))

export function randomValues(dtype: Dtype, length: number, random: Random): ValueArray {
  const out = newValues(dtype, length)
  const write = encoder(dtype)
  const signed = dtype === 'i32' || dtype === 'i8'
  for (let k = 0; k < length; k++) {
    const x = isFloat(dtype)
      ? random.normal()
      : dtype === 'bool'
        ? random.below(2)
        : signed
          ? random.below(17) - 8
          : random.below(9)
    out[k] = write ? write(x, k) : x
  }
  return out
}

export function randomDense(shape: readonly number[], dtype: Dtype, random: Random): Tensor {
  const size = shape.reduce((a, b) => a * b, 1)
  return { kind: 'dense', shape, values: randomValues(dtype, size, random), dtype }
}

/** Average number of children per parent position on axes of unknown width. */
const AVERAGE = 8

/** How the children of a position are generated on an axis of unknown width. */
export const randomKind = (axis: StoredAxis): LevelProperties['stores'] => AXES[axis.kind].level.stores

/**
 * Random coordinates without duplicates on a chain of levels with these extents: about 8 children per parent, some parents
 * empty; a number in `kinds` fixes the children (a width).
 */
export function randomCoords(
  extents: readonly number[],
  kinds: readonly (LevelProperties['stores'] | number)[],
  random: Random,
): Int32Array[] {
  let columns: readonly Int32Array[] = []
  let rows = 1
  extents.forEach((extent, level) => {
    const parents = new Column(rows)
    const own = new Column(rows)
    const kind = kinds[level]!
    for (let row = 0; row < rows; row++)
      for (const c of typeof kind === 'number'
        ? distinct(kind, extent, random)
        : SEGMENTS[kind](extent, random)) {
        parents.push(row)
        own.push(c)
      }
    columns = [...columns.map((c) => gather(c, parents.values)), own.values]
    rows = own.values.length
  })
  return [...columns]
}

/** A growing list of integers; plain arrays of hundreds of millions of elements would exceed the heap. */
class Column {
  #held: Int32Array
  #length = 0

  constructor(capacity: number) {
    this.#held = allocate(capacity, 'coordinates')
  }

  push(x: number): void {
    if (this.#length === this.#held.length) {
      const held = allocate(Math.max(16, Math.ceil(this.#length * 1.5)), 'coordinates')
      held.set(this.#held)
      this.#held = held
    }
    this.#held[this.#length++] = x
  }

  get values(): Int32Array {
    return this.#held.subarray(0, this.#length)
  }
}

function* range(start: number, end: number): Generator<number> {
  for (let c = start; c < end; c++) yield c
}

const SEGMENTS: Readonly<
  Record<LevelProperties['stores'], (extent: number, random: Random) => Iterable<number>>
> = {
  all: (extent) => range(0, extent),
  prefix: (extent, random) => range(0, random.below(extent + 1)),
  interval: (extent, random) => {
    const start = random.below(extent + 1)
    return range(start, start + random.below(Math.min(2 * AVERAGE, extent - start) + 1))
  },
  elements: (extent, random) => distinct(random.below(2 * AVERAGE + 1), extent, random),
}

function distinct(count: number, extent: number, random: Random): readonly number[] {
  const wanted = Math.min(extent, count)
  const chosen = new Set<number>()
  while (chosen.size < wanted) chosen.add(random.below(extent))
  return [...chosen].sort((a, b) => a - b)
}

/** The integers below `n` in random order (Fisher and Yates). */
export function permutation(n: number, random: Random): Int32Array {
  const ids = Int32Array.from({ length: n }, (_, k) => k)
  for (let k = n - 1; k > 0; k--) {
    const other = random.below(k + 1)
    const id = ids[k]!
    ids[k] = ids[other]!
    ids[other] = id
  }
  return ids
}

/** Returns random boundaries of segments with 1 to 8 elements. */
export function randomList(end: number, random: Random): Int32Array {
  const out = [0]
  for (let at = 0; at < end; ) {
    at = Math.min(end, at + 1 + random.below(8))
    out.push(at)
  }
  return Int32Array.from(out)
}
