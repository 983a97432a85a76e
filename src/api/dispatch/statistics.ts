/** Facts of bound tensors: statistics of their sparse structure. */

import { byName } from '../../ast/by-name.ts'
import { fail, failWith, SptError } from '../../ast/diagnostics/diagnostic.ts'
import type { Statistic } from '../../elaborate/index.ts'
import type { Axis } from '../../ir/coordinates/axis.ts'
import { hasIndices, hasIndptr, isDense, isStored, parentOf, segmentSize } from '../../ir/coordinates/axis.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import type { Expr, Var } from '../../ir/expressions/expr.ts'
import { freeVars } from '../../ir/expressions/expr-tree.ts'
import { getOrAdd } from '../../ir/memoize.ts'
import { evaluate } from '../../ir/values/evaluate.ts'
import type { FamilyStatistic } from '../../plan/family-codec.ts'
import { allAxesOf, callerTensor, isStructured } from '../../run/bind/bind-plan.ts'
import { axesOfBinding } from '../../run/bind/binding-names.ts'
import { type Bound, bindInputs } from '../../run/bind/index.ts'
import { RARE_INPUTS } from '../../run/bind/rare-inputs.ts'
import { openParams } from '../../run/bind/sizes/bound-sizes.ts'
import { extentsOf, sourceOf } from '../../run/bind/sources/coordinate-sources.ts'
import { type CoordTensor, DenseOnDevice, namedArrays, type Tensor } from '../../storage/tensor.ts'
import type { BoundValues } from '../inputs/bound-inputs.ts'
import { residentStructure } from '../resident/resident-structure.ts'
import type { FillRatioStatistic } from './dispatch-conditions.ts'
import type { Facts, SizeFacts } from './facts.ts'
import type { Lengths } from './fill-ratio.ts'
import { isWhole, lengthsOf, needsValues, offsetsOf, setsOf, storedFraction } from './fill-ratio.ts'

/** Statistics by name. */
type Wanted = ReadonlyMap<string, Statistic | FillRatioStatistic>

/** Returns a bound tensor by coordinates. Throws SptError `bind/…`. */
export function elementsOf(
  kernel: Kernel1,
  name: string,
  tensor: Tensor,
  sizes: ReadonlyMap<string, number>,
): CoordTensor {
  const { columns, tensor: t } = sourceOf(kernel, name, tensor, extentsOf(kernel, sizes), RARE_INPUTS)
  const { shape, dtype } = tensor
  return { kind: 'coords', shape, coords: columns, values: t?.values ?? null, dtype }
}

/** A statistic of a family of plans. */
export const statisticIn = (s: FamilyStatistic): Statistic | FillRatioStatistic =>
  s.kind === 'fill_ratio'
    ? { kind: s.kind, tensor: s.of, instance: s.format }
    : s.kind === 'nnz'
      ? { kind: s.kind, tensor: s.of }
      : { kind: s.kind, axis: s.of }

/** Statistics of one binding, each computed once on demand. */
export class Statistics implements Facts {
  readonly #kernel: Kernel1
  readonly #given: BoundValues
  readonly #facts: SizeFacts
  readonly #wanted: Wanted
  readonly #axes: ReadonlyMap<string, Axis>
  readonly #lengths = new Map<string, Lengths>()
  /** Downloaded offsets of resident tensors, by axis. */
  readonly #downloaded = new Map<string, ArrayLike<number>>()
  /** Resident tensors without values, by name. */
  readonly #structures = new Map<string, Tensor>()
  readonly #coverages = new Map<FillRatioStatistic, number>()
  /** Names of statistics that only runs can measure. */
  readonly unknown = new Set<string>()
  #whole: ReadonlyMap<string, Int32Array | null> | undefined

  constructor(kernel: Kernel1, given: BoundValues, sizes: SizeFacts, wanted: Wanted) {
    this.#kernel = kernel
    this.#given = given
    this.#facts = sizes
    this.#wanted = wanted
    this.#axes = allAxesOf(kernel)
  }

  isGiven(name: string): boolean {
    return this.#given.statistics.has(name)
  }

  get #sizes(): ReadonlyMap<string, number> {
    return this.#facts.sizes
  }

  /** Downloads the required data of resident tensors: offsets per axis, or all coordinates for fill ratios. */
  async download(): Promise<void> {
    for (const [name, s] of this.#wanted) {
      if (this.#given.statistics.has(name)) continue
      if (s.kind === 'fill_ratio') {
        const r = this.#given.resident[s.tensor]
        if (r && !needsValues(s)) this.#structures.set(s.tensor, await residentStructure(r))
        continue
      }
      const axis = s.kind === 'nnz' ? this.#lastAxis(s.tensor) : s.axis
      for (const r of Object.values(this.#given.resident)) {
        const column = axis !== undefined && r.kind === 'stored' ? r.levels.get(axis)?.indptr : undefined
        if (axis === undefined || !column || this.#downloaded.has(axis)) continue
        this.#downloaded.set(axis, (await r.queue.download(column)) as Int32Array)
      }
    }
  }

  /** Returns the value of a statistic. Throws SptError `choose/unknown-statistic`, and like `bindInputs` for invalid structure. */
  value(variable: Var): number | undefined {
    const s = this.#wanted.get(variable.name)
    const given = this.#given.statistics.get(variable.name)
    if (!s || given !== undefined) return given
    if (s.kind === 'fill_ratio') return this.#fillRatio(s, variable)
    return s.kind === 'nnz' ? this.#elements(s.tensor, variable) : this.#of(s.axis, variable)[s.kind]
  }

  #fillRatio(c: FillRatioStatistic, variable: Var): number {
    const before = this.#coverages.get(c)
    if (before !== undefined) return before
    const { tensors } = this.#given
    const name = c.tensor
    const own = tensors[name] ?? this.#structures.get(name) ?? this.#random(name)
    const operands = this.#operands(c)
    const axes = axesOfBinding(this.#kernel, name)
    // Arrays of a format are not over the kernel's axes.
    const isOwn = own?.kind !== 'stored' || namedArrays(own).every(([axis]) => axes.includes(axis))
    if (!own || own instanceof DenseOnDevice || !isOwn || !operands) {
      // A run will measure it; until then the fill ratio counts as 1.
      if (!c.live) return this.#unknown(variable, name)
      this.unknown.add(variable.name)
      return 1
    }
    const found = storedFraction(c, own, () => elementsOf(this.#kernel, name, own, this.#sizes), operands)
    this.#coverages.set(c, found)
    return found
  }

  /**
   * Returns the format arguments for a fill ratio, including masks that the kernel has as tensors; undefined if only runs can determine
   * them.
   */
  #operands(c: FillRatioStatistic): Readonly<Record<string, Tensor>> | undefined {
    const { tensors, beside } = this.#given
    if (c.live && !isWhole(c)) return undefined
    const own: [string, Tensor][] = []
    for (const name of setsOf(c)) {
      if (name in beside || !this.#kernel.buffers.some((b) => b.name === name)) continue
      const mask = tensors[name] ?? this.#random(name)
      if (!mask || mask instanceof DenseOnDevice) return undefined
      own.push([name, elementsOf(this.#kernel, name, mask, this.#sizes)])
    }
    return { ...beside, ...byName(own) }
  }

  /** The random tensor that binding generates for an unbound input; undefined without a seed. */
  #random(tensor: string): Tensor | undefined {
    if (this.#given.seed === undefined) return undefined
    const bound = this.#bare(tensor)
    return bound.dense.get(tensor) ?? bound.sources.find((s) => s.name === tensor)?.tensor ?? undefined
  }

  #of(axis: string, variable: Var): Lengths {
    return getOrAdd(this.#lengths, axis, () => {
      const offsets = this.#downloaded.get(axis) ?? this.#boundOffsets(axis)
      return (offsets && lengthsOf(offsets)) ?? this.#built(axis, variable)
    })
  }

  /** Offsets of an axis that only one bound tensor has: ready-made, or counted from sorted coordinates. Otherwise undefined. */
  #boundOffsets(axis: string): ArrayLike<number> | undefined {
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

  /** Counts the offsets of an axis under a dense root axis; undefined if this does not apply. */
  #counted(name: string, tensor: string, { coords }: CoordTensor): Int32Array | undefined {
    const axis = this.#axes.get(name)
    const parent = axis && this.#axes.get(parentOf(axis) ?? '')
    if (!hasIndptr(axis) || !hasIndices(axis) || !axis.unique) return undefined
    if (!isDense(parent) || parent.parent !== null) return undefined
    if ([...freeVars(parent.extent)].some((v) => !this.#sizes.has(v))) return undefined
    const over = axesOfBinding(this.#kernel, tensor)
    const [rows, columns] = [coords[over.indexOf(parent.name)], coords[over.indexOf(name)]]
    return rows && columns && offsetsOf(rows, columns, Math.max(0, evaluate(parent.extent, this.#sizes)))
  }

  /** Statistics from the structure that binding builds of all bound or random data. */
  #built(axis: string, variable: Var): Lengths {
    this.#whole ??= this.#structure(axis, variable)
    const indptr = this.#whole.get(axis)
    return (indptr && lengthsOf(indptr)) ?? this.#unknown(variable, axis)
  }

  /** Binds the sparse tensors only, without values. */
  #structure(axis: string, variable: Var): ReadonlyMap<string, Int32Array | null> {
    const { tensors, seed } = this.#given
    const from = Object.keys(tensors).filter((n) => axesOfBinding(this.#kernel, n).includes(axis))
    if (from.length === 0 && seed === undefined) return this.#unknown(variable, axis)
    const out = new Map<string, Int32Array | null>()
    for (const { levels } of this.#bare().storages.values())
      for (const [name, level] of levels) out.set(name, level.indptr)
    return out
  }

  /** Binds without values of sparse tensors. `also`: name of a further tensor, which may be dense. */
  #bare(also?: string): Bound {
    const { tensors, seed } = this.#given
    const isSparse = (over: readonly string[]): boolean => over.some((a) => isStructured(this.#axes, a))
    const bare = Object.entries(tensors)
      .filter(([name]) => isSparse(axesOfBinding(this.#kernel, name)))
      .map(([name, t]) => [name, t.kind === 'dense' ? t : { ...t, values: null }] as const)
    const buffers = this.#kernel.buffers.filter(
      (b) =>
        b.role !== 'in' || b.name === also || (isSparse(b.axes) && (b.name in tensors || seed !== undefined)),
    )
    const params = this.#kernel.params.filter((p) => p.kind === 'size')
    // The message is that of conditions, so that a size in conditions is reported once.
    const missing = openParams({ ...this.#kernel, params }).filter((p) => !this.#sizes.has(p.name))
    if (missing.length > 0) throw new SptError(missing.map((p) => this.#facts.missing(p.name)))
    return bindInputs(
      { ...this.#kernel, params, buffers },
      {
        tensors: Object.fromEntries(bare),
        params: Object.fromEntries([...this.#sizes].filter(([n]) => params.some((p) => p.name === n))),
        ...(seed !== undefined && { seed }),
      },
    )
  }

  #lastAxis(tensor: string): string | undefined {
    return callerTensor(this.#kernel, tensor)?.axes.findLast((a) => {
      const axis = this.#axes.get(a)
      return axis !== undefined && hasIndptr(axis)
    })
  }

  /** Number of elements: the product of the positions of each chain's last axis. */
  #elements(tensor: string, variable: Var): number {
    const axes = callerTensor(this.#kernel, tensor)?.axes ?? []
    const parents = new Set(axes.map((a) => parentOf(this.#axes.get(a)!)))
    return axes.filter((a) => !parents.has(a)).reduce((n, a) => n * this.#positions(a, variable), 1)
  }

  #positions(name: string, variable: Var): number {
    const axis = this.#axes.get(name)
    if (!axis) return this.#unknown(variable, name)
    if (hasIndptr(axis)) return this.#of(name, variable).count
    const parent = parentOf(axis)
    const above = parent === null ? 1 : this.#positions(parent, variable)
    const each = isStored(axis) ? segmentSize(axis) : null
    return each ? above * this.#evaluated(each) : this.#unknown(variable, name)
  }

  #evaluated(e: Expr): number {
    for (const name of freeVars(e)) if (!this.#sizes.has(name)) fail(this.#facts.missing(name))
    return Math.max(0, evaluate(e, this.#sizes))
  }

  /** Throws `choose/unknown-statistic`. `of`: an axis, or a tensor that is needed by coordinates. */
  #unknown(variable: Var, of: string): never {
    const isTensor = callerTensor(this.#kernel, of) !== undefined
    const resident = Object.entries(this.#given.resident).find(([name]) =>
      isTensor ? name === of : axesOfBinding(this.#kernel, name).includes(of),
    )
    return failWith('choose/unknown-statistic', `missing ${variable.name} (required by the dispatch)`, {
      ...(variable.span && { span: variable.span }),
      expected: isTensor
        ? `${of} by its coordinates or in arrays over the kernel's axes${resident || this.#given.tensors[of] ? ', with values on the host if the condition needs them' : ''}`
        : resident
          ? `arrays over ${of}: ${resident[0]} is resident ${resident[1].kind === 'coords' ? 'by its coordinates' : 'in a format of several parts'}`
          : `a tensor over ${of}, or its structure`,
      hint: `give a number: statistics: { '${variable.name}': … } (--size '${variable.name}=…' on the command line), or name a schedule (spt tune: a space)`,
    })
  }
}
