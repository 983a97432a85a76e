/** What choices ask of bound tensors: sizes, and statistics of their structure. */
import { byName } from '../ast/by-name.ts'
import { fail } from '../ast/diagnostic.ts'
import { allocate } from '../columns/allocate.ts'
import type { AxisStatistic, Statistic } from '../elaborate/index.ts'
import { type Axis, hasIndices, hasIndptr, isDense, isStored, parentOf, segmentSize } from '../ir/axis.ts'
import { evaluate } from '../ir/evaluate.ts'
import type { Expr, Var } from '../ir/expr.ts'
import { freeVars } from '../ir/expr-tree.ts'
import type { Kernel1 } from '../ir/stage1.ts'
import { axesOfBinding, bindingOf } from '../run/bind/binding-names.ts'
import { allAxesOf, callerTensor, isStructured } from '../run/bind/caller-tensors.ts'
import { bindInputs } from '../run/bind/index.ts'
import type { Resident } from '../storage/engines/device/index.ts'
import type { CoordTensor, Tensor } from '../storage/tensor.ts'

/** What is bound to a kernel, under the names that its text declares. */
export interface BoundValues {
  readonly tensors: Readonly<Record<string, Tensor>>
  readonly resident: Readonly<Record<string, Resident>>
  readonly params: Readonly<Record<string, number>>
  readonly seed: number | undefined
  /** Statistics that are known already, by name. */
  readonly statistics: ReadonlyMap<string, number>
}

/**
 * Whether the kernel's text declares a buffer or an axis of that name; formats have lists, sets and parts beside. `used`: what formats
 * take by name, which is none of the axes.
 */
export const isDeclared = (kernel: Kernel1, name: string, used: Pick<ReadonlySet<string>, 'has'>): boolean =>
  callerTensor(kernel, name) !== undefined || (allAxesOf(kernel).has(name) && !used.has(name))

/** Those of what is bound that the kernel's text declares. */
export const declaredOf = <T>(
  kernel: Kernel1,
  bound: Readonly<Record<string, T>>,
  used: Pick<ReadonlySet<string>, 'has'>,
): Record<string, T> => byName(Object.entries(bound).filter(([name]) => isDeclared(kernel, name, used)))

/** Sizes as they are given, and those that the shapes of tensors are. */
export function sizesOf(
  kernel: Kernel1,
  { tensors, resident, params }: Pick<BoundValues, 'tensors' | 'resident' | 'params'>,
): Map<string, number> {
  const known = new Map<string, number>()
  const shapes = [...Object.entries(tensors), ...Object.entries(resident)]
  for (const [name, { shape }] of shapes)
    bindingOf(kernel, name).dimensions.forEach(({ extent }, k) => {
      const size = shape[k]
      if (extent.kind === 'var' && size !== undefined) known.set(extent.name, size)
    })
  for (const [name, value] of Object.entries(params)) known.set(name, value)
  return known
}

/** Lengths of segments, as far as anybody asks. */
type Lengths = Readonly<Record<AxisStatistic, number>>

/** Statistics of the segments that `indptr` tells apart; `null` where it does not. Linear in their number. */
function lengthsOf(indptr: ArrayLike<number>): Lengths | null {
  const segments = indptr.length - 1
  if (segments < 0 || indptr[0] !== 0) return null
  let longest = 0
  let shortest = segments > 0 ? Number.POSITIVE_INFINITY : 0
  let empty = 0
  for (let s = 0; s < segments; s++) {
    const length = indptr[s + 1]! - indptr[s]!
    if (length < 0) return null
    if (length > longest) longest = length
    if (length < shortest) shortest = length
    if (length === 0) empty++
  }
  const count = indptr[segments]!
  return { count, longest, shortest, empty, segments, mean: segments > 0 ? count / segments : 0 }
}

/** Offsets of the different columns of each row, where both are in order. */
function offsetsOf(rows: Int32Array, columns: Int32Array, count: number): Int32Array | undefined {
  const offsets = allocate(count + 1, 'offsets')
  let [row, column, positions] = [0, -1, 0]
  for (let e = 0; e < rows.length; e++) {
    const r = rows[e]!
    const c = columns[e]!
    if (r < row || r >= count || (r === row && c < column)) return undefined
    if (r > row) {
      for (; row < r; row++) offsets[row + 1] = positions
      column = -1
    }
    if (c !== column) positions++
    column = c
  }
  for (; row < count; row++) offsets[row + 1] = positions
  return offsets
}

/** The sizes and statistics of one binding; each is found when it is asked for, once. */
export class Statistics {
  readonly #kernel: Kernel1
  readonly #given: BoundValues
  readonly sizes: ReadonlyMap<string, number>
  readonly #axes: ReadonlyMap<string, Axis>
  readonly #lengths = new Map<string, Lengths>()
  /** Arrays that a device has, by the names of their axes. */
  readonly #downloaded = new Map<string, ArrayLike<number>>()
  #whole: ReadonlyMap<string, Int32Array | null> | undefined

  constructor(kernel: Kernel1, given: BoundValues) {
    this.#kernel = kernel
    this.#given = given
    this.sizes = sizesOf(kernel, given)
    this.#axes = allAxesOf(kernel)
  }

  /** @throws SptError `choose/unknown-size` */
  size({ name, span }: Var): number {
    const value = this.sizes.get(name)
    if (value !== undefined) return value
    return fail({
      code: 'choose/unknown-size',
      message: `what is chosen depends on ${name}, which has no value`,
      ...(span ? { span } : {}),
      expected: 'a value, or a tensor whose shape gives it',
      hint: `give ${name} a number (--size ${name}=128 on the command line), or name a schedule (spt tune: a space)`,
    })
  }

  /** Brings what is asked of resident tensors to the host: one array of offsets for each axis. */
  async download(wantedStatistics: Iterable<Statistic>): Promise<void> {
    for (const s of wantedStatistics) {
      const axis = s.kind === 'nnz' ? this.#lastAxis(s.tensor) : s.axis
      for (const r of Object.values(this.#given.resident)) {
        const column = axis !== undefined && r.kind === 'stored' ? r.levels.get(axis)?.indptr : undefined
        if (axis === undefined || !column || this.#downloaded.has(axis)) continue
        this.#downloaded.set(axis, (await r.queue.download(column)) as Int32Array)
      }
    }
  }

  /** @throws SptError `choose/unknown-statistic`, and as `bindInputs` where the structure is not as it should be */
  of(s: Statistic, asked: Var): number {
    const given = this.#given.statistics.get(asked.name)
    if (given !== undefined) return given
    return s.kind === 'nnz' ? this.#elements(s.tensor, asked) : this.#of(s.axis, asked)[s.kind]
  }

  #of(axis: string, asked: Var): Lengths {
    let known = this.#lengths.get(axis)
    if (!known) {
      const brought = this.#downloaded.get(axis) ?? this.#brought(axis)
      known = (brought && lengthsOf(brought)) ?? this.#built(axis, asked)
      this.#lengths.set(axis, known)
    }
    return known
  }

  /** The offsets of an axis that one tensor alone says something about: ready-made, or counted where rows are in order. */
  #brought(axis: string): ArrayLike<number> | undefined {
    const from = Object.entries(this.#given.tensors).filter(([name]) =>
      axesOfBinding(this.#kernel, name).includes(axis),
    )
    const [only] = from
    if (!only || from.length > 1) return undefined
    const [name, tensor] = only
    if (tensor.kind === 'coords') return this.#counted(axis, name, tensor)
    const indptr: unknown = tensor.kind === 'stored' ? tensor.arrays[axis]?.indptr : undefined
    return indptr instanceof Int32Array ? indptr : undefined
  }

  /** Of an axis under a dense one. */
  #counted(name: string, tensor: string, { coords }: CoordTensor): Int32Array | undefined {
    const axis = this.#axes.get(name)
    const parent = axis && this.#axes.get(parentOf(axis) ?? '')
    if (!hasIndptr(axis) || !hasIndices(axis) || !axis.unique) return undefined
    if (!isDense(parent) || parent.parent !== null) return undefined
    if ([...freeVars(parent.extent)].some((v) => !this.sizes.has(v))) return undefined
    const over = axesOfBinding(this.#kernel, tensor)
    const [rows, columns] = [coords[over.indexOf(parent.name)], coords[over.indexOf(name)]]
    return rows && columns && offsetsOf(rows, columns, Math.max(0, evaluate(parent.extent, this.sizes)))
  }

  /** From the structure that binding makes of all that is bound, or of random data. */
  #built(axis: string, asked: Var): Lengths {
    this.#whole ??= this.#structure(axis, asked)
    const indptr = this.#whole.get(axis)
    return (indptr && lengthsOf(indptr)) ?? this.#unknown(asked, axis)
  }

  /** Binds the sparse tensors by themselves, without values: dense ones have no part in it. */
  #structure(axis: string, asked: Var): ReadonlyMap<string, Int32Array | null> {
    const { tensors, seed } = this.#given
    const from = Object.keys(tensors).filter((n) => axesOfBinding(this.#kernel, n).includes(axis))
    if (from.length === 0 && seed === undefined) return this.#unknown(asked, axis)
    const isSparse = (over: readonly string[]): boolean => over.some((a) => isStructured(this.#axes, a))
    const bare = Object.entries(tensors)
      .filter(([name]) => isSparse(axesOfBinding(this.#kernel, name)))
      .map(([name, t]) => [name, t.kind === 'dense' ? t : { ...t, values: null }] as const)
    const buffers = this.#kernel.buffers.filter(
      (b) => b.role !== 'in' || (isSparse(b.axes) && (b.name in tensors || seed !== undefined)),
    )
    const params = this.#kernel.params.filter((p) => p.kind === 'size')
    const bound = bindInputs(
      { ...this.#kernel, params, buffers },
      {
        tensors: Object.fromEntries(bare),
        params: Object.fromEntries([...this.sizes].filter(([n]) => params.some((p) => p.name === n))),
        ...(seed === undefined ? {} : { seed }),
      },
    )
    const out = new Map<string, Int32Array | null>()
    for (const { levels } of bound.storages.values())
      for (const [name, level] of levels) out.set(name, level.indptr)
    return out
  }

  #lastAxis(tensor: string): string | undefined {
    return callerTensor(this.#kernel, tensor)?.axes.findLast((a) => {
      const axis = this.#axes.get(a)
      return axis !== undefined && hasIndptr(axis)
    })
  }

  /** Positions of the last axis of each chain, multiplied. */
  #elements(tensor: string, asked: Var): number {
    const axes = callerTensor(this.#kernel, tensor)?.axes ?? []
    const parents = new Set(axes.map((a) => parentOf(this.#axes.get(a)!)))
    return axes.filter((a) => !parents.has(a)).reduce((n, a) => n * this.#positions(a, asked), 1)
  }

  #positions(name: string, asked: Var): number {
    const axis = this.#axes.get(name)
    if (!axis) return this.#unknown(asked, name)
    if (hasIndptr(axis)) return this.#of(name, asked).count
    const parent = parentOf(axis)
    const above = parent === null ? 1 : this.#positions(parent, asked)
    const each = isStored(axis) ? segmentSize(axis) : null
    return each ? above * this.#evaluated(each, asked) : this.#unknown(asked, name)
  }

  #evaluated(e: Expr, asked: Var): number {
    for (const name of freeVars(e)) if (!this.sizes.has(name)) this.size({ ...asked, name })
    return Math.max(0, evaluate(e, this.sizes))
  }

  #unknown(asked: Var, axis: string): never {
    const resident = Object.entries(this.#given.resident).find(([name]) =>
      axesOfBinding(this.#kernel, name).includes(axis),
    )
    return fail({
      code: 'choose/unknown-statistic',
      message: `what is chosen depends on ${asked.name}, which nothing that is bound gives`,
      ...(asked.span ? { span: asked.span } : {}),
      expected: resident
        ? `arrays over ${axis}: ${resident[0]} is resident ${resident[1].kind === 'coords' ? 'by its coordinates' : 'in a format of several parts'}`
        : `a tensor over ${axis}, or its structure`,
      hint: `give it as a number: statistics: { '${asked.name}': … } (--size '${asked.name}=…' on the command line), or name a schedule (spt tune: a space)`,
    })
  }
}
